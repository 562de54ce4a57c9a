use burn_zoo_resnet::burn::{backend::Flex, tensor::Tensor};
use burn_zoo_resnet::{Error, ResNet, preset, read_image};

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let device = Default::default();
    let model = match args.next() {
        Some(weights) => ResNet::<Flex>::from_pretrained("resnet18", weights, &device)?,
        None => ResNet::<Flex>::from_preset("resnet18", &device)?,
    };
    let pixel_values = match args.next() {
        Some(photo) => read_image(photo, &preset("resnet18")?.0.preprocessing, &device)?,
        None => Tensor::ones([1, 3, 224, 224], &device),
    };
    let features = model.forward_features(pixel_values.clone());
    let (logits, counts) =
        burn_zoo_resnet::count(|| model.with_num_classes(10).forward(pixel_values));
    println!("features {:?}, logits {:?}", features.dims(), logits.dims());
    println!("fast paths {}, generic {}", counts.fast, counts.generic);
    Ok(())
}

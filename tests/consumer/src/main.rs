use burn_zoo_resnet::burn::{backend::Flex, tensor::Tensor};
use burn_zoo_resnet::{Error, ModelConfig, PretrainedModel, ResNet, ResNetConfig, read_image};

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let device = Default::default();
    let (model, report) = match args.next() {
        // Published weights, with a new last layer for ten classes.
        Some(file) => ResNet::<Flex>::from_pretrained_for(10, "resnet18", file, &device)?,
        None => (
            ResNet::from_preset("resnet18", &device)?.with_num_classes(10),
            Default::default(),
        ),
    };
    let pixel_values = match args.next() {
        Some(photo) => {
            let (preset, _) = ResNetConfig::preset("resnet18")?;
            read_image(photo, preset.images()?, &device)?
        }
        None => Tensor::ones([1, 3, 224, 224], &device),
    };
    let features = model.forward_features(pixel_values.clone());
    let (logits, counts) = burn_zoo_resnet::count(|| model.forward(pixel_values));
    println!(
        "loaded {}, initialised {:?}",
        report.loaded, report.initialised
    );
    println!("features {:?}, logits {:?}", features.dims(), logits.dims());
    println!("fast paths {}, generic {}", counts.fast, counts.generic);
    Ok(())
}

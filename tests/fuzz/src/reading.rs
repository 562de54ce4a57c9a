use burn::tensor::DType;
use burn_zoo_checkpoint::LazyTensors;
use std::path::Path;

/// Opens a file, reads every tensor in both ways, and the tokenizer. Tensors whose numbers would take
/// more than `most_bytes` are left out: that is for the caller to know before it reads, as loading a
/// model does. Gives the tensors read, or `None` for a file that was refused.
pub fn read_whole(path: &Path, most_bytes: usize) -> Option<usize> {
    let opened = LazyTensors::open(path).ok()?;
    let mut count = 0;
    for (key, tensor) in &opened.tensors {
        // A file may state sizes whose product is beyond counting.
        let len = tensor
            .shape
            .iter()
            .try_fold(1usize, |n, d| n.checked_mul(*d));
        if len.is_none_or(|len| len.saturating_mul(8) > most_bytes) {
            continue;
        }
        let whole = tensor.read(key);
        if let Ok(data) = &whole {
            assert_eq!(&data.shape[..], tensor.shape.as_slice(), "{key}");
        }
        drop(whole);
        count += usize::from(tensor.read_as(key, DType::F32).is_ok());
    }
    // An error is an answer too.
    let _ = opened.gguf_tokenizer();
    Some(count)
}

use super::{contiguous, from_vec, slice};
use burn::tensor::TensorMetadata;
use burn_autodiff::{
    checkpoint::base::Checkpointer,
    grads::Gradients,
    ops::{Backward, Ops, unary},
};
use burn_flex::{Flex, FlexTensor};
use rayon::prelude::*;

/// Elements a thread works on at a time.
const CHUNK: usize = 1 << 14;

/// `max(x, 0)`, where NaN stays NaN as in PyTorch.
pub(super) fn relu(x: FlexTensor) -> FlexTensor {
    let x = contiguous(x);
    map(&x, &x, |x, _| if x < 0.0 { 0.0 } else { x })
}

/// `f` of each pair of elements.
fn map(a: &FlexTensor, b: &FlexTensor, f: impl Fn(f32, f32) -> f32 + Sync) -> FlexTensor {
    let arch = pulp::Arch::new();
    let (values_a, values_b) = (slice(a), slice(b));
    let mut out = vec![0.0f32; values_a.len()];
    out.par_chunks_mut(CHUNK)
        .zip(values_a.par_chunks(CHUNK))
        .zip(values_b.par_chunks(CHUNK))
        .for_each(|((out, a), b)| {
            arch.dispatch(|| {
                for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                    *out = f(*a, *b);
                }
            });
        });
    from_vec(out, &a.shape().to_vec())
}

/// Backward of [`relu`] from its result: the gradient where that is above 0.
#[derive(Debug)]
pub(super) struct Relu;

impl Backward<Flex, 1> for Relu {
    type State = FlexTensor;

    fn backward(self, ops: Ops<FlexTensor, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        unary::<Flex, _>(ops.parents, ops.node, grads, |dy| {
            map(
                &contiguous(dy),
                &ops.state,
                |dy, y| if y > 0.0 { dy } else { 0.0 },
            )
        });
    }
}

use burn::tensor::{Distribution, Tensor, backend::Backend};
use burn_zoo_core::Mode;

/// In training, makes each number 0 with probability `prob` and divides the others by `1 - prob`, which
/// keeps their mean (Srivastava et al. 2014; torch's `Dropout`). Of any shape.
///
/// Random numbers are the backend's own: [`Backend::seed`] decides them.
pub fn dropout<B: Backend, const D: usize>(x: Tensor<B, D>, prob: f64, mode: Mode) -> Tensor<B, D> {
    let shape = x.dims();
    masked(x, shape, prob, mode)
}

/// Stochastic depth: [`dropout`] of whole images, `[batch, channels, height, width]`, in a branch that is
/// added to its input (Huang et al. 2016, arXiv:1603.09382; torchvision's `StochasticDepth` by row).
pub fn stochastic_depth<B: Backend>(x: Tensor<B, 4>, prob: f64, mode: Mode) -> Tensor<B, 4> {
    let [batch, ..] = x.dims();
    masked(x, [batch, 1, 1, 1], prob, mode)
}

fn masked<B: Backend, const D: usize>(
    x: Tensor<B, D>,
    shape: [usize; D],
    prob: f64,
    mode: Mode,
) -> Tensor<B, D> {
    if mode == Mode::Eval || prob == 0.0 {
        return x;
    }
    let keep = 1.0 - prob;
    let options = (&x.device(), x.dtype());
    let kept = Tensor::<B, D>::random(shape, Distribution::Bernoulli(keep), options);
    x * kept * (1.0 / keep)
}

use burn::module::{AutodiffModule, Param};
use burn::tensor::Tensor;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn_zoo_checkpoint::{FlatGradients, ParamVisitor, visit_params};
use burn_zoo_core::seeded;

/// Path and number of elements of every parameter that receives a gradient.
pub fn trainable<B: AutodiffBackend, M: AutodiffModule<B>>(model: &M) -> Vec<(String, usize)> {
    struct Visitor(Vec<(String, usize)>);
    impl<B: AutodiffBackend> ParamVisitor<B> for Visitor {
        fn visit<const D: usize>(&mut self, path: String, param: &Param<Tensor<B, D>>) {
            if param.is_require_grad() {
                self.0.push((path, param.shape().num_elements()));
            }
        }
    }
    let mut visitor = Visitor(Vec::new());
    visit_params(model, &mut visitor);
    visitor.0
}

/// The 2-norm of all gradients together; 0 where there are none.
pub fn global_norm<B: AutodiffBackend>(grads: &FlatGradients<B>) -> f64 {
    let squares = grads.values().map(|g| (g.clone() * g.clone()).sum());
    let total = squares.reduce(|a, b| a + b);
    total.map_or(0.0, |t| number(t).sqrt())
}

/// The one number of a tensor. A backend's `into_scalar` goes through its default type, f32, even where the
/// tensor is f64.
pub fn number<B: Backend>(one: Tensor<B, 1>) -> f64 {
    one.into_data().iter::<f64>().next().unwrap_or(f64::NAN)
}

/// Scales all gradients so that their global norm is at most `max_norm`, as PyTorch's
/// `clip_grad_norm_`: by `max_norm / (norm + 1e-6)` where that is below 1.
pub fn clip_global_norm<B: AutodiffBackend>(
    grads: &mut FlatGradients<B>,
    norm: f64,
    max_norm: f64,
) {
    let scale = seeded(
        "clipping without its 1e-6",
        max_norm / (norm + 1e-6),
        |_| max_norm / norm,
    );
    if scale < 1.0 {
        for grad in grads.values_mut() {
            let own = grad.clone();
            let scale = seeded("clipping each gradient by itself", scale, |_| {
                (max_norm / number((own.clone() * own).sum()).sqrt()).min(1.0)
            });
            *grad = grad.clone() * scale;
        }
    }
}

use burn::module::{AutodiffModule, ModuleVisitor, Param};
use burn::tensor::{ElementConversion, Tensor, backend::AutodiffBackend};
use burn_zoo_checkpoint::PathStack;
use std::collections::BTreeMap;

/// Gradients by parameter path, each flattened.
pub type FlatGradients<B> = BTreeMap<String, Tensor<<B as AutodiffBackend>::InnerBackend, 1>>;

/// Takes the gradient of every parameter that has one.
pub fn collect_gradients<B: AutodiffBackend, M: AutodiffModule<B>>(
    model: &M,
    mut grads: B::Gradients,
) -> FlatGradients<B> {
    struct Visitor<'a, B: AutodiffBackend> {
        stack: PathStack,
        grads: &'a mut B::Gradients,
        found: FlatGradients<B>,
    }
    impl<B: AutodiffBackend> ModuleVisitor<B> for Visitor<'_, B> {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.stack.enter(name);
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.stack.exit();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            if let Some(grad) = param.val().grad_remove(self.grads) {
                let len = grad.shape().num_elements();
                self.found.insert(self.stack.path(), grad.reshape([len]));
            }
        }
    }
    let mut visitor = Visitor::<B> {
        stack: PathStack::default(),
        grads: &mut grads,
        found: BTreeMap::new(),
    };
    model.visit(&mut visitor);
    visitor.found
}

/// The 2-norm of all gradients together; 0 where there are none.
pub fn global_norm<B: AutodiffBackend>(grads: &FlatGradients<B>) -> f64 {
    let squares = grads.values().map(|g| (g.clone() * g.clone()).sum());
    let total = squares.reduce(|a, b| a + b);
    total.map_or(0.0, |t| t.into_scalar().elem::<f64>().sqrt())
}

/// Scales all gradients so that their global norm is at most `max_norm`, as PyTorch's
/// `clip_grad_norm_`: by `max_norm / (norm + 1e-6)` where that is below 1.
pub fn clip_global_norm<B: AutodiffBackend>(
    grads: &mut FlatGradients<B>,
    norm: f64,
    max_norm: f64,
) {
    let scale = max_norm / (norm + 1e-6);
    if scale < 1.0 {
        for grad in grads.values_mut() {
            *grad = grad.clone() * scale;
        }
    }
}

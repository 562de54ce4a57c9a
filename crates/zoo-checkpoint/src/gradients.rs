use crate::{ParamVisitor, visit_params};
use burn::module::{AutodiffModule, Param};
use burn::tensor::{Tensor, backend::AutodiffBackend};
use std::collections::BTreeMap;

/// Gradients by parameter path, each flattened.
pub type FlatGradients<B> = BTreeMap<String, Tensor<<B as AutodiffBackend>::InnerBackend, 1>>;

/// Takes the gradient of every parameter that has one.
pub fn collect_gradients<B: AutodiffBackend, M: AutodiffModule<B>>(
    model: &M,
    mut grads: B::Gradients,
) -> FlatGradients<B> {
    struct Visitor<'a, B: AutodiffBackend> {
        grads: &'a mut B::Gradients,
        found: FlatGradients<B>,
    }
    impl<B: AutodiffBackend> ParamVisitor<B> for Visitor<'_, B> {
        fn visit<const D: usize>(&mut self, path: String, param: &Param<Tensor<B, D>>) {
            if let Some(grad) = param.val().grad_remove(self.grads) {
                let len = grad.shape().num_elements();
                self.found.insert(path, grad.reshape([len]));
            }
        }
    }
    let mut visitor = Visitor::<B> {
        grads: &mut grads,
        found: BTreeMap::new(),
    };
    visit_params(model, &mut visitor);
    visitor.found
}

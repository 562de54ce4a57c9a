use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, backend::Backend};

/// Looks at the float parameters and running statistics of a module, each with its path.
pub trait ParamVisitor<B: Backend> {
    /// Called with the components of the path joined by dots, as in `layers.0.0.conv1.weight`.
    fn visit<const D: usize>(&mut self, path: String, param: &Param<Tensor<B, D>>);
}

/// Changes the float parameters and running statistics of a module, each with its path.
pub trait ParamMapper<B: Backend> {
    /// As [`ParamVisitor::visit`]; gives what takes the parameter's place.
    fn map<const D: usize>(
        &mut self,
        path: String,
        param: Param<Tensor<B, D>>,
    ) -> Param<Tensor<B, D>>;
}

/// Shows every parameter of `module` to `visitor`, in the order of the module's fields.
pub fn visit_params<B: Backend, M: Module<B>>(module: &M, visitor: &mut impl ParamVisitor<B>) {
    module.visit(&mut Walk::new(visitor));
}

/// `module` with every parameter changed by `mapper`.
pub fn map_params<B: Backend, M: Module<B>>(module: M, mapper: &mut impl ParamMapper<B>) -> M {
    module.map(&mut Walk::new(mapper))
}

/// Keeps the path while Burn walks over a module.
struct Walk<'a, T> {
    path: Vec<String>,
    inner: &'a mut T,
}

impl<'a, T> Walk<'a, T> {
    fn new(inner: &'a mut T) -> Self {
        Self {
            path: Vec::new(),
            inner,
        }
    }
}

impl<B: Backend, T: ParamVisitor<B>> ModuleVisitor<B> for Walk<'_, T> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        self.inner.visit(self.path.join("."), param);
    }
}

impl<B: Backend, T: ParamMapper<B>> ModuleMapper<B> for Walk<'_, T> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        self.inner.map(self.path.join("."), param)
    }
}

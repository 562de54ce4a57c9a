//! Code that is generic over the backend, run on the one that a user names: by its name and the number
//! of a device, or as a lane that is compared with others, with kernels fused or not.
//!
//! A backend is there if its feature is; a missing driver or device is an error, not a panic.

use burn::backend::Autodiff;
use burn::tensor::backend::AutodiffBackend;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn::tensor::backend::Backend;
use burn_zoo_core::{Error, Result};
use std::str::FromStr;

/// Kernels are not fused (docs/src/decisions.md).
#[cfg(feature = "wgpu")]
type UnfusedWgpu = burn_wgpu::CubeBackend<burn_wgpu::WgpuRuntime, f32, i32, u32>;
#[cfg(feature = "cuda")]
type UnfusedCuda = burn_cubecl::CubeBackend<burn_cubecl::cubecl::cuda::CudaRuntime, f32, i32, u8>;

/// A backend by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// burn-flex: the fast CPU backend.
    Flex,
    /// burn-ndarray: the CPU backend that models are checked against.
    NdArray,
    /// burn-wgpu: any GPU with Vulkan, Metal or DirectX 12.
    Wgpu,
    /// burn-cuda: NVIDIA GPUs.
    Cuda,
}

/// Name, kind and whether it is compiled in.
const BACKENDS: [(&str, BackendKind, bool); 4] = [
    ("flex", BackendKind::Flex, cfg!(feature = "flex")),
    ("ndarray", BackendKind::NdArray, cfg!(feature = "ndarray")),
    ("wgpu", BackendKind::Wgpu, cfg!(feature = "wgpu")),
    ("cuda", BackendKind::Cuda, cfg!(feature = "cuda")),
];

impl BackendKind {
    /// The first backend that is compiled in.
    pub fn default_name() -> &'static str {
        BACKENDS.iter().find(|b| b.2).map_or("flex", |b| b.0)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        BACKENDS.iter().find(|b| b.1 == self).map_or("", |b| b.0)
    }
}

impl FromStr for BackendKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = BACKENDS.iter().find(|b| b.0 == name);
        found
            .map(|b| b.1)
            .ok_or_else(|| Error::unknown("backend", name, BACKENDS.iter().map(|b| b.0)))
    }
}

/// A backend and the number of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// The backend.
    pub backend: BackendKind,
    /// The device, from 0. CPU backends have one.
    pub index: usize,
}

/// Code that is generic over the backend.
pub trait WithBackend {
    /// What it gives.
    type Output;

    /// Runs on `device` of `B`, which tracks gradients; `B::InnerBackend` does not.
    fn run<B: AutodiffBackend>(self, device: B::Device) -> Self::Output;
}

/// Runs `f` on the backend and device of `spec`.
///
/// # Errors
/// If the backend is not compiled in, or has no driver or no such device here.
pub fn with_backend<F: WithBackend>(spec: DeviceSpec, f: F) -> Result<F::Output> {
    let name = spec.backend.name();
    check_index(name, spec.index)?;
    match spec.backend {
        #[cfg(feature = "flex")]
        BackendKind::Flex => Ok(f.run::<Autodiff<burn_flex::Flex>>(Default::default())),
        #[cfg(feature = "ndarray")]
        BackendKind::NdArray => Ok(f.run::<Autodiff<burn_ndarray::NdArray>>(Default::default())),
        #[cfg(feature = "wgpu")]
        BackendKind::Wgpu => {
            let device = wgpu_device::<UnfusedWgpu>(spec.index)?;
            Ok(f.run::<Autodiff<UnfusedWgpu>>(device))
        }
        #[cfg(feature = "cuda")]
        BackendKind::Cuda => {
            let device = cuda_device::<UnfusedCuda>(spec.index)?;
            Ok(f.run::<Autodiff<UnfusedCuda>>(device))
        }
        #[allow(unreachable_patterns)]
        _ => Err(Error::Device {
            backend: name.into(),
            message: format!("is not in this program; build it with `--features {name}`"),
        }),
    }
}

/// Runs `f` on the backend of this name, with fused kernels or without where it could fuse them, on the
/// device of this number.
///
/// # Errors
/// As [`with_backend`].
pub fn on_lane<F: WithBackend>(
    backend: &str,
    fused: bool,
    index: usize,
    f: F,
) -> Result<F::Output> {
    match (backend, fused) {
        // There for lanes where no command has it.
        #[cfg(feature = "reference")]
        ("ndarray", _) => {
            check_index(backend, index)?;
            Ok(f.run::<Autodiff<burn_ndarray::NdArray>>(Default::default()))
        }
        #[cfg(feature = "wgpu")]
        ("wgpu", true) => {
            let device = wgpu_device::<burn_wgpu::Wgpu>(index)?;
            Ok(f.run::<Autodiff<burn_wgpu::Wgpu>>(device))
        }
        #[cfg(feature = "cuda")]
        ("cuda", true) => {
            let device = cuda_device::<burn_cuda::Cuda>(index)?;
            Ok(f.run::<Autodiff<burn_cuda::Cuda>>(device))
        }
        _ => {
            let backend = backend.parse()?;
            with_backend(DeviceSpec { backend, index }, f)
        }
    }
}

/// A CPU is one device.
fn check_index(backend: &str, index: usize) -> Result<()> {
    if matches!(backend, "flex" | "ndarray") && index > 0 {
        let message = format!("{backend} has one device, 0");
        return Err(Error::usage("--device", message));
    }
    Ok(())
}

/// The adapter of this number, which must work.
#[cfg(feature = "wgpu")]
fn wgpu_device<B: Backend<Device = burn_wgpu::WgpuDevice>>(
    index: usize,
) -> Result<burn_wgpu::WgpuDevice> {
    let device = match index {
        0 => burn_wgpu::WgpuDevice::default(),
        n => burn_wgpu::WgpuDevice::DiscreteGpu(n - 1),
    };
    probe::<B>(&device).map_err(|e| Error::Device {
        backend: "wgpu".into(),
        message: format!("no usable graphics adapter was found ({e})"),
    })?;
    Ok(device)
}

/// The device of this number, which must work.
#[cfg(feature = "cuda")]
fn cuda_device<B: Backend<Device = burn_cuda::CudaDevice>>(
    index: usize,
) -> Result<burn_cuda::CudaDevice> {
    let device = burn_cuda::CudaDevice::new(index);
    probe::<B>(&device).map_err(|e| Error::Device {
        backend: "cuda".into(),
        message: if e.contains("dynamically load") || e.contains("shared library") {
            "no CUDA driver was found; install NVIDIA's driver or choose another --backend".into()
        } else {
            format!("device {index} cannot be used ({e})")
        },
    })?;
    Ok(device)
}

/// Runs a small computation, since a missing driver or device is a panic in Burn's GPU backends.
/// Returns the first line of the panic's message.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
fn probe<B: Backend>(device: &B::Device) -> std::result::Result<(), String> {
    use std::sync::{Arc, Mutex};
    let message = Arc::new(Mutex::new(String::new()));
    let seen = message.clone();
    let hook = std::panic::take_hook();
    // The panic may happen on a thread of the backend's own, so the hook listens for all.
    std::panic::set_hook(Box::new(move |info| {
        if let Ok(mut seen) = seen.lock()
            && seen.is_empty()
        {
            let text = info.payload_as_str().unwrap_or("panicked");
            *seen = text.lines().next().unwrap_or("panicked").to_string();
        }
    }));
    let device = device.clone();
    // What the panic leaves behind is not used again: the caller ends with the error.
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let x = burn::tensor::Tensor::<B, 1>::ones([4], (&device, burn::tensor::DType::F32));
        (x.clone() + x).sum().into_data().iter::<f32>().sum::<f32>()
    }));
    std::panic::set_hook(hook);
    let message = message.lock().map(|m| m.clone()).unwrap_or_default();
    match ran {
        Ok(8.0) => Ok(()),
        Ok(wrong) => Err(format!("1 + 1 summed over four elements gave {wrong}")),
        Err(_) => Err(message),
    }
}

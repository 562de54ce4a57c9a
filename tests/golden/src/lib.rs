//! The reference files that `tools/golden` computed with the upstream classes, embedded, so that a single
//! binary can compare itself with them.

use include_dir::{Dir, include_dir};

static BERT: Dir = include_dir!("$CARGO_MANIFEST_DIR/bert");
static GPT2: Dir = include_dir!("$CARGO_MANIFEST_DIR/gpt2");
static LLAMA: Dir = include_dir!("$CARGO_MANIFEST_DIR/llama");
static RESNET: Dir = include_dir!("$CARGO_MANIFEST_DIR/resnet");
static MOBILENET: Dir = include_dir!("$CARGO_MANIFEST_DIR/mobilenet");
static EFFICIENTNET: Dir = include_dir!("$CARGO_MANIFEST_DIR/efficientnet");

/// A model of one family with random weights and what upstream computed with them.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The family's folder.
    pub family: &'static str,
    /// The file's name without its ending.
    pub name: &'static str,
    /// Weights, inputs, outputs and gradients, as safetensors.
    pub bytes: &'static [u8],
    /// Ten optimizer steps from the same weights, where there are any.
    pub steps: Option<&'static [u8]>,
}

/// Every case, by family.
pub fn cases() -> Vec<Case> {
    let families = [
        ("bert", &BERT),
        ("efficientnet", &EFFICIENTNET),
        ("gpt2", &GPT2),
        ("llama", &LLAMA),
        ("mobilenet", &MOBILENET),
        ("resnet", &RESNET),
    ];
    families.into_iter().flat_map(of_family).collect()
}

fn of_family((family, folder): (&'static str, &'static Dir<'static>)) -> Vec<Case> {
    const ENDING: &str = ".safetensors";
    let name = |file: &include_dir::File<'static>| file.path().to_str()?.strip_suffix(ENDING);
    let case = |file: &'static include_dir::File<'static>| {
        let name = name(file).filter(|name| !name.ends_with(".steps"))?;
        let steps = folder.get_file(format!("{name}.steps{ENDING}"));
        Some(Case {
            family,
            name,
            bytes: file.contents(),
            steps: steps.map(include_dir::File::contents),
        })
    };
    folder.files().filter_map(case).collect()
}

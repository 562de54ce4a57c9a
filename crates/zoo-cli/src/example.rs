//! What the examples of the families share.

use crate::{predict, train};
use burn_zoo_core::{Result, cache_dir};
use clap::{CommandFactory, FromArgMatches, Parser};

/// An example of one family.
pub struct Example {
    /// Its own name.
    pub name: &'static str,
    /// What it does, for `--help`.
    pub about: &'static str,
    /// The model that is trained on small images, and the one for a folder of photos.
    pub models: [&'static str; 2],
    /// A photo to classify, and models with the names of their published weights' files; the first whose
    /// file is on this machine is taken.
    pub photo: Option<(&'static str, &'static [(&'static str, &'static str)])>,
}

impl Example {
    /// Without options and with published weights on this machine, classifies the photo; otherwise
    /// trains, with the options of `zoo train`. Gives the exit code.
    pub fn run(&self) -> i32 {
        match self.photo {
            Some((photo, weights)) if std::env::args_os().len() == 1 => {
                let there = |(_, file): &&(&str, &str)| weights_file(file).is_file();
                if let Some((model, file)) = weights.iter().find(there) {
                    return crate::finish(self.classify(photo, model, file));
                }
                burn_zoo_core::say!(
                    "no published weights on this machine: `cargo run --release -p burn-zoo-cli -- fetch {}` brings them and a photo is classified here; now a small model is trained",
                    weights[0].0
                );
            }
            _ => {}
        }
        self.train()
    }

    fn classify(&self, photo: &str, model: &str, file: &str) -> Result<()> {
        #[derive(Parser)]
        struct Predict {
            #[command(flatten)]
            args: predict::Args,
        }
        let weights = weights_file(file);
        let weights = weights.to_string_lossy();
        burn_zoo_core::say!("{photo} by {model} with the weights in {weights}");
        let args = ["predict", model, photo, "--weights", &weights, "--top", "3"];
        predict::run(&Predict::parse_from(args).args)?;
        burn_zoo_core::say!("classes are ImageNet-1k's; 281 to 285 are the house cats\n");
        burn_zoo_core::say!("next:");
        burn_zoo_core::say!(
            "  cargo run --release -p burn-zoo-cli -- predict {model} YOUR_PHOTO.jpg --weights {weights}"
        );
        burn_zoo_core::say!(
            "  cargo run --release --example {} -- --dataset digits",
            self.name
        );
        Ok(())
    }

    fn train(&self) -> i32 {
        #[derive(Parser)]
        struct Train {
            #[command(flatten)]
            args: train::Args,
        }
        let [small, large] = self.models;
        let prefix = format!("cargo run --release --example {} --", self.name);
        let help = format!(
            "Examples:\n  {prefix} --epochs 10\n  {prefix} --dataset fashion-mnist\n  {prefix} --dataset image-folder --data-dir photos/\n  {prefix} --resume runs/{small}-digits-1\n\nCtrl-C saves and stops; --resume goes on from there."
        );
        let command = Train::command()
            .name(self.name)
            .about(self.about)
            .after_help(help);
        let matches = command.try_get_matches();
        let parsed = matches.and_then(|matches| Train::from_arg_matches(&matches));
        let Train { mut args } = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return crate::wrong_usage(&error),
        };
        args.default_model = Some(match args.dataset_name().as_str() {
            "image-folder" => large,
            _ => small,
        });
        crate::finish_code(train::run_as(args, &prefix))
    }
}

fn weights_file(file: &str) -> std::path::PathBuf {
    cache_dir().join("weights").join(file)
}

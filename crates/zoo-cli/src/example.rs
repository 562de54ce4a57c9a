//! What the examples of the families share.

use crate::{encode, generate, predict, train};
use burn_zoo_core::{Result, cache_dir};
use clap::{CommandFactory, FromArgMatches, Parser};

/// An example of one family.
pub struct Example {
    /// Its own name.
    pub name: &'static str,
    /// What it does, for `--help`.
    pub about: &'static str,
    /// The data set that is learnt from where the user names none.
    pub dataset: &'static str,
    /// The model that is trained on it, and the one for a folder of photos.
    pub models: [&'static str; 2],
    /// What is shown without options where published weights are on this machine.
    pub demo: Demo,
}

/// What published weights are shown with.
pub enum Demo {
    /// Nothing: the example trains.
    None,
    /// A photo to classify, and models with the names of their weights' files; the first whose file is on this
    /// machine is taken.
    Photo(&'static str, &'static [(&'static str, &'static str)]),
    /// A question for the model in a file, and the model of a hub that it is.
    Chat(&'static str, &'static str, &'static str),
    /// Sentences to compare by the model in a folder, and the model of a hub that it is.
    Sentences(&'static [&'static str], &'static str, &'static str),
}

impl Example {
    /// Without options and with published weights on this machine, shows what they can do; otherwise
    /// trains, with the options of `zoo train`. Gives the exit code.
    pub fn run(&self) -> i32 {
        let plain = std::env::args_os().len() == 1;
        match self.demo {
            Demo::Photo(photo, weights) if plain => {
                let there = |(_, file): &&(&str, &str)| weights_file(file).is_file();
                if let Some((model, file)) = weights.iter().find(there) {
                    return crate::finish(self.classify(photo, model, file));
                }
                burn_zoo_core::say!(
                    "no published weights on this machine: `cargo run --release -p burn-zoo-cli -- fetch {}` brings them and a photo is classified here; now a small model is trained",
                    weights[0].0
                );
            }
            Demo::Chat(question, file, model) if plain => {
                if weights_file(file).is_file() {
                    return crate::finish(self.chat(question, file));
                }
                self.say_how(model);
            }
            Demo::Sentences(sentences, folder, model) if plain => {
                if weights_file(folder).is_dir() {
                    return crate::finish(self.compare(sentences, folder));
                }
                self.say_how(model);
            }
            _ => {}
        }
        self.train()
    }

    fn say_how(&self, model: &str) {
        burn_zoo_core::say!(
            "no published weights on this machine: with a network, `cargo run --release -p burn-zoo-cli -- fetch {model}` brings some; now a small model is trained"
        );
    }

    fn chat(&self, question: &str, file: &str) -> Result<()> {
        #[derive(Parser)]
        struct Generate {
            #[command(flatten)]
            args: generate::Args,
        }
        let model = weights_file(file);
        let model = model.to_string_lossy();
        burn_zoo_core::say!("{model}\n\n> {question}");
        let args = ["generate", &model, "--chat", question];
        generate::run(&Generate::parse_from(args).args)?;
        burn_zoo_core::say!("\nnext:");
        burn_zoo_core::say!("  cargo run --release -p burn-zoo-cli -- generate {model} --chat");
        burn_zoo_core::say!(
            "  cargo run --release --example {} -- --dataset kjv",
            self.name
        );
        Ok(())
    }

    fn compare(&self, sentences: &[&str], folder: &str) -> Result<()> {
        #[derive(Parser)]
        struct Embed {
            #[command(flatten)]
            args: encode::EmbedArgs,
        }
        let model = weights_file(folder);
        let model = model.to_string_lossy();
        burn_zoo_core::say!("{model}");
        let args = [&["embed", &model], sentences].concat();
        encode::embed(&Embed::parse_from(args).args)?;
        burn_zoo_core::say!("\nnext:");
        burn_zoo_core::say!(
            "  cargo run --release -p burn-zoo-cli -- embed {model} \"YOUR TEXT\" \"ANOTHER\""
        );
        burn_zoo_core::say!(
            "  cargo run --release --example {} -- --dataset verses",
            self.name
        );
        Ok(())
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
        let others = match self.dataset {
            "kjv" => format!(
                "{prefix} --vocabulary bpe:1024\n  {prefix} --dataset text-file --data-dir YOUR_TEXT.txt"
            ),
            "verses" => format!("{prefix} --dataset labelled-file --data-dir YOUR_TEXTS.csv"),
            _ => format!(
                "{prefix} --dataset fashion-mnist\n  {prefix} --dataset image-folder --data-dir photos/"
            ),
        };
        let help = format!(
            "Examples:\n  {prefix} --epochs 10\n  {others}\n  {prefix} --resume runs/{small}-{}-1\n\nCtrl-C saves and stops; --resume goes on from there.",
            self.dataset
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
        args.default_dataset = Some(self.dataset);
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

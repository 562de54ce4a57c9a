use crate::common::{BlockArgs, dtype, print_json};
use crate::text::{TextArgs, TextModel};
use burn::tensor::backend::{AutodiffBackend, Backend, BackendTypes};
use burn_zoo::{WithBackend, WithCausalLm, with_backend};
use burn_zoo_core::{Error, Result};
use burn_zoo_nn::CausalLm;
use burn_zoo_text::{GenerateOptions, Message, Pieces, Sampling, StopReason, generate};
use serde_json::json;
use std::io::{BufRead, IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::Instant;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  zoo generate HuggingFaceTB/SmolLM2-135M \"The capital of France is\"\n  zoo generate SmolLM2-135M-Instruct.Q4_1.gguf --chat \"What is the capital of France?\"\n  zoo generate model/ --chat --temperature 0.7 --top-p 0.9\n  zoo generate model/ \"Once upon a time\" \"In the beginning\" --max-new-tokens 50 --json\n\nWith --chat and no prompt, lines are read from standard input and the conversation is remembered."
)]
pub struct Args {
    #[command(flatten)]
    text: TextArgs,
    /// Texts to go on with; with --chat, what a user says
    prompts: Vec<String>,
    #[command(flatten)]
    blocks: BlockArgs,
    /// Use the model's chat template
    #[arg(long)]
    chat: bool,
    /// What the system says first, with --chat
    #[arg(long, value_name = "TEXT", requires = "chat")]
    system: Option<String>,
    /// Tokens that are added at most
    #[arg(long, short = 'n', default_value_t = 128, value_name = "N")]
    max_new_tokens: usize,
    /// 0 takes the likeliest token; higher is more varied
    #[arg(long, default_value_t = 0.0, value_name = "T")]
    temperature: f64,
    /// Only so many of the likeliest tokens; 0: all
    #[arg(long, default_value_t = 0, value_name = "K")]
    top_k: usize,
    /// Only the likeliest tokens that together have this probability
    #[arg(long, default_value_t = 1.0, value_name = "P")]
    top_p: f64,
    /// Only tokens with this share of the likeliest one's probability
    #[arg(long, default_value_t = 0.0, value_name = "P")]
    min_p: f64,
    /// What makes tokens that were there less likely; 1: nothing
    #[arg(long, default_value_t = 1.0, value_name = "R")]
    repetition_penalty: f64,
    /// A text that ends the answer; may be given several times
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// Seed of what is left to chance
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Where the context is full, forget its older half and go on
    #[arg(long)]
    slide: bool,
    /// Print JSON: texts, token numbers and times
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    if args.max_new_tokens == 0 {
        return Err(Error::usage("--max-new-tokens", "must be at least 1"));
    }
    if args.stop.iter().any(String::is_empty) {
        return Err(Error::usage(
            "--stop",
            "an empty text would end every answer",
        ));
    }
    if args.prompts.is_empty() && !args.chat {
        return Err(Error::usage(
            "PROMPTS",
            "give a text to go on with, or --chat to talk",
        ));
    }
    let model = args.text.open()?;
    let spec = args.text.backend.spec()?;
    with_backend(spec, OnBackend { args, model })?
}

struct OnBackend<'a> {
    args: &'a Args,
    model: TextModel,
}

impl WithBackend for OnBackend<'_> {
    type Output = Result<()>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        let dtype = dtype::<B>(&self.args.text.dtype, &device)?;
        let talk = Talk {
            args: self.args,
            model: &self.model,
            device: &device,
        };
        let pretrained = &self.model.pretrained;
        let spec = self.args.text.backend.spec()?;
        let products = self.args.blocks.products(spec, dtype)?;
        pretrained.with_causal_lm::<B::InnerBackend, _>(dtype, products, &device, talk)?
    }
}

struct Talk<'a, D> {
    args: &'a Args,
    model: &'a TextModel,
    device: &'a D,
}

impl<B: Backend> WithCausalLm<B> for Talk<'_, <B as BackendTypes>::Device> {
    type Output = Result<()>;

    fn run<M: CausalLm<B>>(self, model: M) -> Result<()> {
        let (args, tokenizer) = (self.args, &self.model.tokenizer);
        tokenizer.fits(model.vocab_size())?;
        let system = args
            .system
            .as_deref()
            .map(|text| Message::new("system", text));
        if !args.prompts.is_empty() {
            let prompts = args.prompts.iter().map(|prompt| match args.chat {
                true => {
                    let said = [system.clone(), Some(Message::new("user", prompt))];
                    let said: Vec<Message> = said.into_iter().flatten().collect();
                    tokenizer.encode(&tokenizer.chat(&said, true)?, false)
                }
                false => tokenizer.encode(prompt, true),
            });
            let prompts = prompts.collect::<Result<Vec<_>>>()?;
            self.answer(&model, &prompts)?;
            return Ok(());
        }
        // A conversation, line by line.
        let mut history: Vec<Message> = system.into_iter().collect();
        tokenizer.chat(&[Message::new("user", "?")], true)?;
        let asks = std::io::stdin().is_terminal();
        if asks {
            burn_zoo_core::note!("an empty line or Ctrl-D ends the conversation");
        }
        let mut lines = std::io::stdin().lock().lines();
        loop {
            if asks {
                let mut out = std::io::stderr();
                let _ = write!(out, "> ").and_then(|()| out.flush());
            }
            let line = match lines.next() {
                Some(line) => line.map_err(Error::io("standard input", "read"))?,
                None => return Ok(()),
            };
            if line.trim().is_empty() {
                return Ok(());
            }
            history.push(Message::new("user", line.trim()));
            let prompt = tokenizer.encode(&tokenizer.chat(&history, true)?, false)?;
            let answers = self.answer(&model, &[prompt])?;
            history.extend(
                answers
                    .iter()
                    .map(|text| Message::new("assistant", text.trim())),
            );
        }
    }
}

impl<D> Talk<'_, D> {
    /// Goes on with prompts, shows the answers as they come, and gives them.
    fn answer<B, M>(&self, model: &M, prompts: &[Vec<usize>]) -> Result<Vec<String>>
    where
        B: Backend + BackendTypes<Device = D>,
        M: CausalLm<B>,
    {
        let (args, tokenizer) = (self.args, &self.model.tokenizer);
        let options = GenerateOptions {
            max_new_tokens: args.max_new_tokens,
            sampling: Sampling {
                temperature: args.temperature,
                top_k: args.top_k,
                top_p: args.top_p,
                min_p: args.min_p,
                repetition_penalty: args.repetition_penalty,
                seed: args.seed,
            },
            stop_tokens: self.model.stop_tokens()?,
            slide: args.slide,
        };
        let streams = prompts.len() == 1 && !args.json;
        let mut texts: Vec<Text> = prompts
            .iter()
            .map(|_| Text::new(tokenizer.pieces(true)))
            .collect();
        let started = Instant::now();
        let mut first = None;
        let generated = generate(model, prompts, &options, self.device, |row, token| {
            first.get_or_insert_with(|| started.elapsed().as_secs_f64());
            let flow = texts[row].push(token, &args.stop)?;
            if streams {
                texts[row].show();
            }
            Ok(flow)
        })?;
        let seconds = started.elapsed().as_secs_f64();
        for (text, generated) in texts.iter_mut().zip(&generated) {
            // A text that ends the answer was cut off, with all that followed.
            if generated.reason != StopReason::Asked {
                text.whole += &text.pieces.rest(&text.whole)?;
            }
        }
        if streams {
            texts[0].finish();
        }
        let done: Vec<String> = texts.into_iter().map(|text| text.whole).collect();
        let first = first.unwrap_or(seconds);
        let new: usize = generated.iter().map(|g| g.tokens.len()).sum();
        let before: usize = prompts.iter().map(Vec::len).sum();
        let later = new.saturating_sub(prompts.len());
        if args.json {
            let all = generated.iter().zip(prompts).zip(&done).map(|((g, prompt), text)| {
                let reason = match g.reason {
                    StopReason::StopToken => "stop token",
                    StopReason::Length => "length",
                    StopReason::Asked => "stop text",
                };
                json!({ "prompt_tokens": prompt, "tokens": g.tokens, "text": text, "ended": reason })
            });
            print_json(&json!({
                "texts": all.collect::<Vec<_>>(),
                "seconds_to_first_token": first,
                "prompt_tokens_per_second": before as f64 / first.max(1e-9),
                "tokens_per_second": later as f64 / (seconds - first).max(1e-9),
            }));
            return Ok(done);
        }
        if !streams {
            for (i, (text, prompt)) in done.iter().zip(&args.prompts).enumerate() {
                burn_zoo_core::say!(
                    "[{}] {prompt}{}{text}",
                    i + 1,
                    if args.chat { "\n" } else { "" }
                );
            }
        }
        burn_zoo_core::note!(
            "{before} tokens in {first:.2} s ({:.0}/s), then {later} in {:.2} s ({:.1} tokens/s)",
            before as f64 / first.max(1e-9),
            seconds - first,
            later as f64 / (seconds - first).max(1e-9)
        );
        Ok(done)
    }
}

/// An answer as it comes.
struct Text<'a> {
    pieces: Pieces<'a>,
    whole: String,
    shown: usize,
    /// Bytes at the end that may be the beginning of a text that ends the answer.
    held: usize,
}

impl<'a> Text<'a> {
    fn new(pieces: Pieces<'a>) -> Self {
        Self {
            pieces,
            whole: String::new(),
            shown: 0,
            held: 0,
        }
    }

    /// Adds a token; ends where one of `stops` is there, which is cut off.
    fn push(&mut self, token: usize, stops: &[String]) -> Result<ControlFlow<()>> {
        self.whole += &self.pieces.next(token)?;
        if let Some(at) = stops.iter().filter_map(|stop| self.whole.find(stop)).min() {
            self.whole.truncate(at);
            self.held = 0;
            return Ok(ControlFlow::Break(()));
        }
        let begins = |stop: &String| {
            let ends = (1..stop.len()).rev().filter(|n| stop.is_char_boundary(*n));
            ends.into_iter()
                .find(|n| self.whole.ends_with(&stop[..*n]))
                .unwrap_or(0)
        };
        self.held = stops.iter().map(begins).max().unwrap_or(0);
        Ok(ControlFlow::Continue(()))
    }

    fn show(&mut self) {
        let to = self
            .whole
            .len()
            .saturating_sub(self.held)
            .max(self.shown.min(self.whole.len()));
        if to > self.shown {
            let mut out = std::io::stdout();
            // A reader that has gone is no reason to stop.
            let _ = out
                .write_all(&self.whole.as_bytes()[self.shown..to])
                .and_then(|()| out.flush());
            self.shown = to;
        }
    }

    fn finish(&mut self) {
        self.held = 0;
        self.show();
        burn_zoo_core::say!("");
    }
}

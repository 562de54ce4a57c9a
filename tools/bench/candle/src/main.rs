//! The job of `tools/bench/language.py` in candle, which multiplies with the file's blocks and activations of
//! 8 bits: `candle-language MODEL.gguf`. Token numbers do not matter for speed, so they are made up.

use anyhow::{Context, Result};
use candle_core::quantized::gguf_file::Content;
use candle_core::{Device, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use std::time::Instant;

const PROMPT: u32 = 256;
const NEW: usize = 64;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("name a GGUF file")?;
    let run = || -> Result<(f64, f64)> {
        let mut file = std::fs::File::open(&path)?;
        let content = Content::read(&mut file)?;
        let mut model = ModelWeights::from_gguf(content, &mut file, &Device::Cpu)?;
        let ids: Vec<u32> = (0..PROMPT).map(|i| 500 + i * 7 % 900).collect();
        let start = Instant::now();
        let mut logits = model.forward(&Tensor::new(ids, &Device::Cpu)?.unsqueeze(0)?, 0)?;
        let prompt = start.elapsed().as_secs_f64();
        let start = Instant::now();
        for i in 0..NEW - 1 {
            let token = logits.argmax(candle_core::D::Minus1)?.to_vec1::<u32>()?[0];
            let input = Tensor::new(&[[token]], &Device::Cpu)?;
            logits = model.forward(&input, PROMPT as usize + i)?;
        }
        let decode = start.elapsed().as_secs_f64();
        Ok((f64::from(PROMPT) / prompt, (NEW - 1) as f64 / decode))
    };
    run()?;
    let mut runs = vec![run()?, run()?, run()?];
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let prompt = runs[1].0;
    runs.sort_by(|a, b| a.1.total_cmp(&b.1));
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let found = serde_json::json!({
        "program": "candle 0.10, blocks and activations of 8 bits",
        "prompt_tokens_per_second": prompt,
        "tokens_per_second": runs[1].1,
        "peak_mib": peak >> 10,
    });
    println!("{found}");
    Ok(())
}

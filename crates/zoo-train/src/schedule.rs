use crate::recipe::{Recipe, Schedule};

/// The learning rate of optimizer step `step` (from 0) of `total`.
///
/// During `warmup` steps it rises linearly, `lr (step + 1) / warmup`; then half a cosine leads from
/// `lr` to `min_lr` (Loshchilov and Hutter 2017), or it stays.
pub fn learning_rate(recipe: &Recipe, step: usize, total: usize, steps_per_epoch: usize) -> f64 {
    let warmup = ((recipe.warmup_epochs * steps_per_epoch as f64).round() as usize).min(total);
    if step < warmup {
        return recipe.lr * (step + 1) as f64 / warmup as f64;
    }
    match recipe.schedule {
        Schedule::Constant => recipe.lr,
        Schedule::Cosine => {
            let progress = (step - warmup) as f64 / (total - warmup).max(1) as f64;
            let cosine = 0.5 * (1.0 + (std::f64::consts::PI * progress.min(1.0)).cos());
            recipe.min_lr + (recipe.lr - recipe.min_lr) * cosine
        }
    }
}

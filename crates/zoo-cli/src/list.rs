use crate::common::{print_json, table};
use burn_zoo_core::{Result, group_digits};
use serde_json::json;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  zoo list\n  zoo list --json\n  zoo list --markdown")]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the table of the README
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let models = burn_zoo::models();
    if args.json {
        print_json(&json!(models.iter().map(|m| &m.preset).collect::<Vec<_>>()));
        return Ok(());
    }
    let header = [
        "model",
        "crate",
        "task",
        "parameters",
        "input",
        "published top-1",
        "licence",
    ];
    let rows = models.iter().map(|m| {
        let p = &m.preset;
        let published = p.weights.as_ref().and_then(|w| Some((w.top1?, w.dataset)));
        let top1 = published.map_or("–".into(), |(top1, dataset)| {
            format!("{top1:.2} % {dataset}")
        });
        [
            p.name.to_string(),
            format!("burn-zoo-{}", p.family),
            p.task.to_string(),
            group_digits(p.num_parameters as u64),
            p.preprocessing.as_ref().map_or("text".into(), |input| {
                format!("{}×{}×{}", input.num_channels, input.crop, input.crop)
            }),
            top1,
            p.license.to_string(),
        ]
    });
    if args.markdown {
        burn_zoo_core::say!(
            "| {} |\n|{}",
            header.join(" | "),
            "---|".repeat(header.len())
        );
        rows.for_each(|row| burn_zoo_core::say!("| {} |", row.join(" | ")));
    } else {
        let mut table = table(&header);
        table.add_rows(rows);
        burn_zoo_core::say!("{table}");
    }
    Ok(())
}

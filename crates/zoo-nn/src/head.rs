use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{Error, Result, Stages, UpstreamOutput, record};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What stands on a text model, as the class's name in `architectures` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextHead {
    /// Nothing: `…Model`.
    None,
    /// The next token: `…ForCausalLM`, `…LMHeadModel`.
    CausalLm,
    /// The token that stood there: `…ForMaskedLM`.
    MaskedLm,
    /// One of so many classes for a sequence: `…ForSequenceClassification`.
    SequenceClassification,
    /// One of so many classes for each token: `…ForTokenClassification`.
    TokenClassification,
    /// Where an answer begins and ends: `…ForQuestionAnswering`.
    QuestionAnswering,
}

const SUFFIXES: [(&str, TextHead); 7] = [
    ("Model", TextHead::None),
    ("ForCausalLM", TextHead::CausalLm),
    ("LMHeadModel", TextHead::CausalLm),
    ("ForMaskedLM", TextHead::MaskedLm),
    (
        "ForSequenceClassification",
        TextHead::SequenceClassification,
    ),
    ("ForTokenClassification", TextHead::TokenClassification),
    ("ForQuestionAnswering", TextHead::QuestionAnswering),
];

impl TextHead {
    /// The head of a `config.json` whose classes' names begin with `class`; `heads` are those of the family,
    /// the first of them where nothing is said.
    ///
    /// # Errors
    /// If the class is another.
    pub fn from_transformers(json: &Value, class: &str, heads: &[Self]) -> Result<Self> {
        let Some(name) = json["architectures"][0].as_str() else {
            return Ok(heads.first().copied().unwrap_or(Self::None));
        };
        let known = SUFFIXES.iter().filter(|(_, head)| heads.contains(head));
        let known: Vec<_> = known
            .map(|(suffix, head)| (format!("{class}{suffix}"), *head))
            .collect();
        match known.iter().find(|(known, _)| known == name) {
            Some((_, head)) => Ok(*head),
            None => {
                let known = known.iter().map(|(known, _)| known.as_str());
                Err(Error::unknown("architecture", name, known))
            }
        }
    }
}

impl TextHead {
    /// The name of transformers' class whose names begin with `class`.
    pub fn architecture(self, class: &str) -> String {
        let suffix = match (self, class) {
            (TextHead::CausalLm, "GPT2") => "LMHeadModel",
            _ => SUFFIXES
                .iter()
                .find(|(_, head)| *head == self)
                .map_or("Model", |(suffix, _)| suffix),
        };
        format!("{class}{suffix}")
    }

    /// What upstream's class gives out: the hidden states after so many layers, whose stages `stage` names,
    /// and without a head the last of them as its primary output.
    pub fn outputs(self, layers: usize, stage: impl Fn(usize) -> String) -> Vec<UpstreamOutput> {
        let output = |name: String, stage: String, rank: usize| UpstreamOutput {
            primary: name == "last_hidden_state",
            name,
            stage,
            rank,
        };
        let states = (0..=layers).map(|i| output(format!("hidden_states.{i}"), stage(i), 3));
        let mut outputs: Vec<UpstreamOutput> = states.collect();
        match self {
            TextHead::None => outputs.push(output("last_hidden_state".into(), stage(layers), 3)),
            TextHead::QuestionAnswering => outputs.extend(
                ["start_logits", "end_logits"].map(|name| output(name.into(), name.into(), 2)),
            ),
            _ => {}
        }
        outputs
    }
}

impl TextHead {
    /// `[batch, sequence, classes]` as it is; of a head for questions, the stages `start_logits` and
    /// `end_logits` are taken from it.
    pub fn record_spans<B: Backend>(
        self,
        logits: Tensor<B, 3>,
        stages: &mut Option<&mut dyn Stages<B>>,
    ) -> Tensor<B, 3> {
        if self == TextHead::QuestionAnswering {
            for (i, name) in ["start_logits", "end_logits"].into_iter().enumerate() {
                let one = logits.clone().narrow(2, i, 1).squeeze_dim::<2>(2);
                record(stages, || name.into(), &one);
            }
        }
        logits
    }
}

/// The dropout before tokens are told apart by transformers' rules for decoders.
pub fn classifier_dropout(json: &Value) -> f64 {
    let stated = ["classifier_dropout", "hidden_dropout"].map(|key| json[key].as_f64());
    stated.into_iter().flatten().next().unwrap_or(0.1)
}

/// Classes by transformers' rules: `num_labels`, or as many as have names, or two.
pub fn num_labels(json: &Value) -> usize {
    let named = json["id2label"].as_object().map(|names| names.len());
    let counted = json["num_labels"]
        .as_u64()
        .and_then(|n| usize::try_from(n).ok());
    counted.or(named).unwrap_or(2)
}

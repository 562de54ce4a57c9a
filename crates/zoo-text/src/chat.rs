use burn_zoo_core::{Error, Result};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value, context};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Steps a template may take; the longest in use take a few thousand.
const FUEL: u64 = 10_000_000;

/// What somebody said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// The words.
    pub content: String,
}

impl Message {
    /// What `role` said.
    pub fn new(role: &str, content: &str) -> Self {
        Self {
            role: role.into(),
            content: content.into(),
        }
    }
}

/// A model's template for conversations: Jinja with the settings and functions of transformers'
/// `apply_chat_template`. It reads nothing but what it is given.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    source: String,
    /// The file it is from.
    path: PathBuf,
}

impl ChatTemplate {
    /// A template from the file `path`.
    pub fn new(source: impl Into<String>, path: &Path) -> Self {
        Self {
            source: source.into(),
            path: path.to_path_buf(),
        }
    }

    /// The template itself.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The text of a conversation; with `add_generation_prompt` it ends where the assistant begins to speak.
    ///
    /// # Errors
    /// If the template is malformed, refuses the conversation, or asks for what is not there.
    pub fn render(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
        bos_token: &str,
        eos_token: &str,
    ) -> Result<String> {
        let fail = |e: minijinja::Error| {
            let detail = e
                .detail()
                .map(String::from)
                .unwrap_or_else(|| e.kind().to_string());
            let line = e
                .line()
                .map_or(String::new(), |line| format!(" (line {line})"));
            Error::malformed(&self.path, format!("the chat template: {detail}{line}"))
        };
        let mut env = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        env.set_syntax(syntax.map_err(fail)?);
        env.set_undefined_behavior(UndefinedBehavior::Lenient);
        env.set_fuel(Some(FUEL));
        env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        env.add_function(
            "raise_exception",
            |message: String| -> std::result::Result<String, minijinja::Error> {
                Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
            },
        );
        env.add_function("strftime_now", now);
        // Python's, which escapes nothing for HTML.
        env.add_filter("tojson", to_json);
        let source = without_generation(&self.source);
        env.add_template("chat", &source).map_err(fail)?;
        let template = env.get_template("chat").map_err(fail)?;
        let rendered = template.render(context! {
            messages => Value::from_iter(messages.iter().map(said)),
            add_generation_prompt => add_generation_prompt,
            bos_token => bos_token,
            eos_token => eos_token,
            tools => Value::from(()),
            documents => Value::from(()),
        });
        rendered.map_err(fail)
    }
}

/// `{% generation %}` and its end mark what the assistant says, for training; the text is the same without.
/// A condition that holds stands in for them, which takes away the same white space.
fn without_generation(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, after)) = rest.split_once("{%") {
        let Some((inner, behind)) = after.split_once("%}") else {
            break;
        };
        let words = inner.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        let stand_in = match words {
            "generation" => "if true",
            "endgeneration" => "endif",
            other => other,
        };
        text.push_str(before);
        text.push_str("{%");
        match stand_in == words {
            true => text.push_str(inner),
            false => text.push_str(&inner.replace(words, stand_in)),
        }
        text.push_str("%}");
        rest = behind;
    }
    text + rest
}

/// A message as templates look at it.
fn said(message: &Message) -> Value {
    Value::from_pairs([
        ("role", message.role.as_str()),
        ("content", message.content.as_str()),
    ])
}

/// The time in UTC in the format of C's `strftime`.
fn now(format: String) -> std::result::Result<String, minijinja::Error> {
    use std::fmt::Write;
    let bad = || {
        minijinja::Error::new(
            ErrorKind::InvalidOperation,
            format!("`{format}` is no format of times"),
        )
    };
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs()) as i64;
    let time = chrono::DateTime::from_timestamp(seconds, 0).ok_or_else(bad)?;
    let mut text = String::new();
    write!(text, "{}", time.format(&format)).map_err(|_| bad())?;
    Ok(text)
}

fn to_json(value: Value, options: Kwargs) -> std::result::Result<String, minijinja::Error> {
    let bad =
        |e: serde_json::Error| minijinja::Error::new(ErrorKind::BadSerialization, e.to_string());
    let indent: Option<usize> = options.get("indent")?;
    // `ensure_ascii` and `separators` are Python's; what they ask for is what is done.
    let _: Option<Value> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    match indent {
        None => {
            // Python puts a space after commas and colons.
            let mut text = Vec::new();
            let mut writer = serde_json::Serializer::with_formatter(&mut text, Spaced);
            value.serialize(&mut writer).map_err(bad)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
        Some(indent) => {
            let spaces = " ".repeat(indent.min(32));
            let formatter = serde_json::ser::PrettyFormatter::with_indent(spaces.as_bytes());
            let mut text = Vec::new();
            let mut writer = serde_json::Serializer::with_formatter(&mut text, formatter);
            value.serialize(&mut writer).map_err(bad)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
    }
}

/// `json.dumps` without indent.
struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}

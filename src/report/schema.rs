//! JSON against a schema: the subset of JSON Schema (draft 2020-12) that `docs/schema` is written
//! in -> the first thing that is wrong, with its place.
//!
//! Keywords: `type`, `const`, `enum`, `anyOf`, `minimum`, `pattern` (large numbers only),
//! `required`, `properties`, `additionalProperties`, `prefixItems`, `items`, `minItems`,
//! `maxItems`, `$ref` within the schema. Any other is ignored; `tests/schema.rs` sees that no
//! schema has one. Of the alternatives of an `anyOf` the one is reported whose error lies deepest:
//! the value was meant to be that. Cost: linear in the value, times alternatives.

use serde_json::Value;

/// Longest value that a message shows, in characters.
const LONGEST: usize = 60;

/// A schema.
pub struct Schema(Value);

/// What is wrong, and how deep in the value.
struct Wrong {
    depth: usize,
    message: String,
}

impl Schema {
    /// A schema that was read.
    pub fn new(schema: Value) -> Self {
        Self(schema)
    }

    /// Error: the first thing that is wrong, after its place as a JSON pointer.
    pub fn validate(&self, value: &Value) -> Result<(), String> {
        self.check(&self.0, value, &mut Vec::new()).map_err(|w| w.message)
    }

    fn check(&self, schema: &Value, value: &Value, at: &mut Vec<String>) -> Result<(), Wrong> {
        let refuse = |at: &[String], why: String| {
            let place: String = at.iter().map(|key| format!("/{key}")).collect();
            Err(Wrong { depth: at.len(), message: format!("{place}: {why}") })
        };
        if let Some(all) = schema.as_bool() {
            return if all { Ok(()) } else { refuse(at, "nothing may be here".into()) };
        }
        let list = |keyword: &str| {
            schema.get(keyword).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
        };
        if let Some(target) = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|t| self.0.pointer(t.trim_start_matches('#')))
        {
            self.check(target, value, at)?;
        }
        if let Some(kind) = schema.get("type") {
            let is = |kind: &Value| is_of(kind.as_str().unwrap_or_default(), value);
            if !kind.as_array().map_or_else(|| is(kind), |kinds| kinds.iter().any(is)) {
                return refuse(at, format!("{} is not of type {kind}", shown(value)));
            }
        }
        if schema.get("const").is_some_and(|c| c != value)
            || schema.get("enum").is_some_and(|_| !list("enum").contains(value))
        {
            return refuse(at, format!("{} is none of the values", shown(value)));
        }
        let mut deepest: Option<Wrong> = None;
        let mut fits = list("anyOf").is_empty();
        for alternative in list("anyOf") {
            match self.check(alternative, value, at) {
                Ok(()) => {
                    fits = true;
                    break;
                }
                Err(wrong) if deepest.as_ref().is_none_or(|d| wrong.depth > d.depth) => {
                    deepest = Some(wrong)
                }
                Err(_) => {}
            }
        }
        if let (false, Some(wrong)) = (fits, deepest) {
            return Err(wrong);
        }
        if schema
            .get("minimum")
            .and_then(Value::as_f64)
            .is_some_and(|least| value.as_f64().is_some_and(|number| number < least))
        {
            return refuse(at, format!("{value} is too small"));
        }
        let large = |text: &str| text.len() >= 20 && text.bytes().all(|b| b.is_ascii_digit());
        if schema.get("pattern").is_some() && value.as_str().is_some_and(|text| !large(text)) {
            return refuse(at, format!("{} is no large number", shown(value)));
        }
        if let Some(object) = value.as_object() {
            if let Some(key) = list("required")
                .iter()
                .find(|k| k.as_str().is_some_and(|k| !object.contains_key(k)))
            {
                return refuse(at, format!("{key} is not there"));
            }
            for (key, item) in object {
                let own = schema.get("properties").and_then(|p| p.get(key));
                if let Some(schema) = own.or(schema.get("additionalProperties")) {
                    self.below(schema, item, at, key.clone())?;
                }
            }
        }
        if let Some(array) = value.as_array() {
            if schema
                .get("minItems")
                .and_then(Value::as_u64)
                .is_some_and(|n| (array.len() as u64) < n)
            {
                return refuse(at, "too few items".into());
            }
            if schema
                .get("maxItems")
                .and_then(Value::as_u64)
                .is_some_and(|n| (array.len() as u64) > n)
            {
                return refuse(at, "too many items".into());
            }
            for (i, item) in array.iter().enumerate() {
                if let Some(schema) = list("prefixItems").get(i).or(schema.get("items")) {
                    self.below(schema, item, at, i.to_string())?;
                }
            }
        }
        Ok(())
    }

    fn below(
        &self,
        schema: &Value,
        value: &Value,
        at: &mut Vec<String>,
        key: String,
    ) -> Result<(), Wrong> {
        at.push(key);
        let result = self.check(schema, value, at);
        at.pop();
        result
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => false,
    }
}

/// A value in a message.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    let cut: String = text.chars().take(LONGEST).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { text }
}

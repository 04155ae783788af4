//! JSON schema validator for the subset of JSON Schema (draft 2020-12) that `docs/schema` uses.
//! Reports the first error with its place.
//!
//! Keywords: `type`, `const`, `enum`, `anyOf`, `minimum`, `pattern` (large numbers only),
//! `required`, `properties`, `additionalProperties`, `prefixItems`, `items`, `minItems`,
//! `maxItems`, `$ref` within the schema. Others are ignored; `tests/schema.rs` checks that no
//! schema has one. For an `anyOf`, the deepest error among the alternatives is reported, because
//! that alternative was most likely intended. Cost: linear in the value, times alternatives.

use serde_json::Value;

/// Maximum length of a value in a message, in characters.
const MAX_VALUE_LENGTH: usize = 60;

/// A schema.
pub struct Schema(Value);

/// An error with its depth in the value.
struct SchemaError {
    depth: usize,
    message: String,
}

impl Schema {
    /// Creates a validator.
    pub fn new(schema: Value) -> Self {
        Self(schema)
    }

    /// Validates a value. Error: the first error, after its place as a JSON pointer.
    pub fn validate(&self, value: &Value) -> Result<(), String> {
        self.check(&self.0, value, &mut Vec::new()).map_err(|w| w.message)
    }

    fn check(
        &self,
        schema: &Value,
        value: &Value,
        at: &mut Vec<String>,
    ) -> Result<(), SchemaError> {
        let fail = |at: &[String], why: String| {
            let place: String = at.iter().map(|key| format!("/{key}")).collect();
            Err(SchemaError { depth: at.len(), message: format!("{place}: {why}") })
        };
        if let Some(all) = schema.as_bool() {
            return if all { Ok(()) } else { fail(at, "no value is allowed here".into()) };
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
                return fail(at, format!("{} is not of type {kind}", excerpt(value)));
            }
        }
        if schema.get("const").is_some_and(|c| c != value)
            || schema.get("enum").is_some_and(|_| !list("enum").contains(value))
        {
            return fail(at, format!("{} is none of the values", excerpt(value)));
        }
        let mut deepest: Option<SchemaError> = None;
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
            return fail(at, format!("{value} is too small"));
        }
        let large = |text: &str| text.len() >= 20 && text.bytes().all(|b| b.is_ascii_digit());
        if schema.get("pattern").is_some() && value.as_str().is_some_and(|text| !large(text)) {
            return fail(at, format!("{} is not a large number", excerpt(value)));
        }
        if let Some(object) = value.as_object() {
            if let Some(key) = list("required")
                .iter()
                .find(|k| k.as_str().is_some_and(|k| !object.contains_key(k)))
            {
                return fail(at, format!("{key} is missing"));
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
                return fail(at, "too few items".into());
            }
            if schema
                .get("maxItems")
                .and_then(Value::as_u64)
                .is_some_and(|n| (array.len() as u64) > n)
            {
                return fail(at, "too many items".into());
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
    ) -> Result<(), SchemaError> {
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

/// Formats a value in a message.
fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    let cut: String = text.chars().take(MAX_VALUE_LENGTH).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { text }
}

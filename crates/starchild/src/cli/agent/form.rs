//! The fields of a form that a server wants filled in: what is shown of them, and what a typed line
//! means. Pure.

use serde_json::Value;

/// What can be chosen: the value, and the words for it where it has some.
struct Choice<'a> {
    value: &'a str,
    title: Option<&'a str>,
}

/// A field in a line: its name, what it is for, and what can be chosen.
pub fn about(name: &str, field: &Value) -> String {
    let about = field.get("description").or(field.get("title"));
    let about = about.and_then(Value::as_str).unwrap_or_default();
    let shown = |choice: &Choice<'_>| match choice.title {
        Some(title) if title != choice.value => format!("{} ({title})", choice.value),
        _ => choice.value.to_owned(),
    };
    let choices: Vec<String> = choices(field).iter().map(shown).collect();
    let choices = match (choices.is_empty(), is_list(field)) {
        (true, _) => String::new(),
        (false, false) => format!("; one of: {}", choices.join(", ")),
        (false, true) => format!("; any of, with commas: {}", choices.join(", ")),
    };
    let about = match (about, choices.as_str()) {
        ("", choices) => choices.trim_start_matches("; ").to_owned(),
        (about, choices) => format!("{about}{choices}"),
    };
    format!("{name}  {about}").trim_end().to_owned()
}

/// What a line means for a field, or what is wrong with it.
pub fn value(text: &str, field: &Value) -> Result<Value, String> {
    let number = |fits: fn(&Value) -> bool, what: &str| {
        let read = serde_json::from_str(text).ok();
        read.filter(fits).ok_or_else(|| format!("want {what}"))
    };
    match field.get("type").and_then(Value::as_str) {
        Some("integer") => number(|value| value.is_i64() || value.is_u64(), "a whole number"),
        Some("number") => number(Value::is_number, "a number"),
        Some("boolean") => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(true.into()),
            "n" | "no" | "false" => Ok(false.into()),
            _ => Err("want yes or no".into()),
        },
        Some("array") => {
            let words = text
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty());
            words.map(|word| chosen(word, field)).collect()
        }
        _ => chosen(text, field),
    }
}

fn chosen(word: &str, field: &Value) -> Result<Value, String> {
    let choices = choices(field);
    if choices.is_empty() {
        return Ok(word.into());
    }
    let same = |text: &str| text.eq_ignore_ascii_case(word);
    let found = choices
        .iter()
        .find(|choice| same(choice.value) || choice.title.is_some_and(same));
    found
        .map(|choice| choice.value.into())
        .ok_or_else(|| format!("{word} is not among them"))
}

fn is_list(field: &Value) -> bool {
    field.get("type").is_some_and(|kind| kind == "array")
}

/// Servers list choices as `enum`, as constants with titles, and both within `items`.
fn choices(field: &Value) -> Vec<Choice<'_>> {
    let field = field
        .get("items")
        .filter(|_| is_list(field))
        .unwrap_or(field);
    let list = |key: &str| field.get(key).and_then(Value::as_array);
    let titled = list("oneOf").or_else(|| list("anyOf"));
    if let Some(titled) = titled {
        let choice = |choice| {
            Some(Choice {
                value: word(choice, "const")?,
                title: word(choice, "title"),
            })
        };
        return titled.iter().filter_map(choice).collect();
    }
    let names = list("enumNames").map_or(&[][..], Vec::as_slice);
    let values = list("enum").into_iter().flatten().enumerate();
    values
        .filter_map(|(at, value)| {
            Some(Choice {
                value: value.as_str()?,
                title: names.get(at).and_then(Value::as_str),
            })
        })
        .collect()
}

fn word<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_means_what_the_field_is() {
        let fish = json!({ "type": "array", "items": { "anyOf": [
            { "const": "fish-1", "title": "Tuna" }, { "const": "fish-2", "title": "Salmon" },
        ] } });
        let pet =
            json!({ "type": "string", "enum": ["pet-1", "pet-2"], "enumNames": ["Cats", "Dogs"] });
        for (field, text, means) in [
            (json!({ "type": "string" }), "Ann, Bea", json!("Ann, Bea")),
            (json!({ "type": "integer" }), "7", json!(7)),
            (json!({ "type": "number" }), "-0.5", json!(-0.5)),
            (json!({ "type": "boolean" }), "Yes", json!(true)),
            (json!({ "type": "boolean" }), "n", json!(false)),
            (pet.clone(), "pet-2", json!("pet-2")),
            (pet.clone(), "dogs", json!("pet-2")),
            (fish.clone(), "Tuna, fish-2,", json!(["fish-1", "fish-2"])),
        ] {
            assert_eq!(value(text, &field).unwrap(), means, "{text}");
        }
        for (field, text) in [
            (json!({ "type": "integer" }), "7.5"),
            (json!({ "type": "number" }), "many"),
            (json!({ "type": "boolean" }), "perhaps"),
            (pet.clone(), "pet-3"),
            (fish.clone(), "Tuna, Shark"),
        ] {
            assert!(value(text, &field).is_err(), "{text}");
        }
        assert_eq!(
            about("pet", &pet),
            "pet  one of: pet-1 (Cats), pet-2 (Dogs)"
        );
        let shown = about("fish", &fish);
        assert!(
            shown.ends_with("with commas: fish-1 (Tuna), fish-2 (Salmon)"),
            "{shown}"
        );
    }
}

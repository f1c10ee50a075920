//! The actions of the plugin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tea::{Action, Bundle, Call, Error, Result};

/// Returns the plugin's actions.
pub fn bundle() -> Bundle {
    Bundle::new("greeter", env!("CARGO_PKG_VERSION"))
        .description("Greets people.")
        .action(
            Action::new("greeter.hello", "Greets a person.", hello)
                .idempotent()
                .reads(),
        )
        .action(Action::new("greeter.spell", "Spells a text, letter by letter.", spell).streaming())
        .action(Action::new(
            "greeter.relay",
            "Calls another action and returns its result.",
            relay,
        ))
}

// tea checks parameters with the schema of the struct, in workflows before they
// run and in each call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Hello {
    /// who is greeted
    #[schemars(length(min = 1, max = 100))]
    name: String,
    /// how
    #[serde(default)]
    tone: Tone,
}

#[derive(Default, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Tone {
    #[default]
    Plain,
    Loud,
}

#[derive(Serialize, JsonSchema)]
struct Greeting {
    /// the greeting
    text: String,
}

// The type of an error determines how the workflow can handle it.
async fn hello(params: Hello, _call: Call) -> Result<Greeting> {
    if params.name.eq_ignore_ascii_case("nobody") {
        return Err(Error::new(
            "not_found",
            format!("there is no person called {:?}", params.name),
        ));
    }
    let text = format!("Hello, {}!", params.name);
    Ok(Greeting {
        text: if params.tone == Tone::Loud {
            text.to_uppercase()
        } else {
            text
        },
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Spell {
    /// the text to spell
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Spelled {
    /// the number of letters
    letters: usize,
}

// A streaming action emits tokens while it runs. When the call is canceled or
// its deadline has passed, the future is dropped at its next await.
async fn spell(params: Spell, call: Call) -> Result<Spelled> {
    let letters = params.text.chars().count();
    for (i, letter) in params.text.chars().enumerate() {
        call.token(letter).await;
        call.progress((i + 1) as f64 / letters as f64, "spelling")
            .await;
    }
    Ok(Spelled { letters })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Relay {
    /// the name of the action
    action: String,
    /// its parameters
    #[serde(default)]
    params: Map<String, Value>,
}

#[derive(Serialize, JsonSchema)]
struct Relayed {
    /// its result
    result: Value,
}

// Other actions are reached through the host: those of another plugin, of a Lua
// module or of the host itself.
async fn relay(params: Relay, call: Call) -> Result<Relayed> {
    Ok(Relayed {
        result: call.invoke(&params.action, &params.params).await?,
    })
}

use plugin::actions::bundle;
use plugin::tea::testing::{Host, call};
use serde_json::json;

#[tokio::test]
async fn hello_greets() {
    let (result, _) = call(
        &bundle(),
        "greeter.hello",
        json!({"name": "Ada", "tone": "loud"}),
        Host::default(),
    )
    .await
    .unwrap();
    assert_eq!(result, json!({"text": "HELLO, ADA!"}));
}

#[tokio::test]
async fn hello_fails() {
    let error = call(
        &bundle(),
        "greeter.hello",
        json!({"name": "nobody"}),
        Host::default(),
    )
    .await
    .unwrap_err();
    assert_eq!(error.kind, "not_found");
}

#[tokio::test]
async fn hello_checks_its_parameters() {
    let error = call(
        &bundle(),
        "greeter.hello",
        json!({"nmae": "Ada"}),
        Host::default(),
    )
    .await
    .unwrap_err();
    assert_eq!(error.kind, "validation_error");
}

#[tokio::test]
async fn spell_emits_tokens() {
    let (result, emitted) = call(
        &bundle(),
        "greeter.spell",
        json!({"text": "olá"}),
        Host::default(),
    )
    .await
    .unwrap();
    assert_eq!(result, json!({"letters": 3}));
    assert_eq!(emitted.tokens, ["o", "l", "á"]);
}

#[tokio::test]
async fn relay_calls_another_action() {
    let host = Host::default().action("text.upper", |params| {
        Ok(params["text"].as_str().unwrap().to_uppercase().into())
    });
    let params = json!({"action": "text.upper", "params": {"text": "tea"}});
    let (result, _) = call(&bundle(), "greeter.relay", params, host)
        .await
        .unwrap();
    assert_eq!(result, json!({"result": "TEA"}));
}

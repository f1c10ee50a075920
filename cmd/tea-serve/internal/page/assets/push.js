// Notifications of questions, which the browser gets while the page is closed.
import {get, post} from "./api.js"
import {dialog, h} from "./dom.js"
import {trusted} from "./graph.js"

// missing says why this browser cannot get notifications, "" if it can.
function missing() {
	if (!isSecureContext) {
		return "Browsers show notifications only for pages at https:// addresses, and at http://localhost and http://127.0.0.1. Open this page at such an address."
	}
	return "serviceWorker" in navigator && "PushManager" in window && "Notification" in window ? "" : "This browser does not support push messages, or they are turned off, as in a private window."
}

// subscription returns the subscription of this browser, null if there is none.
async function subscription() {
	const worker = missing() ? null : await navigator.serviceWorker.getRegistration("/")
	return await worker?.pushManager.getSubscription() ?? null
}

// keyOf returns the key of a server to which a subscription belongs.
function keyOf(made) {
	const text = btoa(String.fromCharCode(...new Uint8Array(made.options.applicationServerKey)))
	return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")
}

// turnOn subscribes this browser.
async function turnOn(key) {
	if (await Notification.requestPermission() !== "granted") {
		throw new Error("The browser does not allow notifications for this page. Allow them in the browser's settings for the page.")
	}
	await navigator.serviceWorker.register(trusted.createScriptURL("/worker.js"))
	const worker = await navigator.serviceWorker.ready
	await (await worker.pushManager.getSubscription())?.unsubscribe() // it may be for another key
	const made = await worker.pushManager.subscribe({userVisibleOnly: true, applicationServerKey: key})
	try {
		await post("/v1/push/subscribe", made.toJSON())
	} catch (err) {
		await made.unsubscribe()
		throw err
	}
	return true
}

// turnOff ends the subscription of this browser.
async function turnOff(made) {
	await post("/v1/push/unsubscribe", {endpoint: made.endpoint})
	await made.unsubscribe()
	return true
}

// silence ends the subscription of this browser, also if the server is away, and removes
// the notifications.
export async function silence() {
	const made = await subscription()
	await (made && turnOff(made).catch(() => made.unsubscribe()))
	const worker = await navigator.serviceWorker?.getRegistration("/")
	for (const shown of await worker?.getNotifications?.() ?? []) {
		shown.close()
	}
}

// change asks whether to turn notifications on or off.
function change(key, made) {
	const text = missing()
	if (text) {
		return dialog("Notifications", h("p", null, text), "OK", () => false)
	}
	if (made) {
		return dialog("Notifications", h("p", null, "This browser shows the questions of runs."), "Turn off", () => turnOff(made))
	}
	return dialog("Notifications", h("p", null, "This browser can show the questions of runs, even while this page is closed. Anyone who uses this browser can then answer them without a token."),
		"Turn on", () => turnOn(key))
}

// notifications shows its button if the token can answer questions.
export async function notifications(button) {
	let key, made
	async function show() {
		made = await subscription()
		button.textContent = made ? "Notifications are on …" : "Notify me …"
		button.hidden = false
	}
	button.addEventListener("click", async () => await change(key, made) && show())
	try {
		({key} = await get("/v1/push"))
		await show()
		if (made) { // the server may have lost its state
			await (keyOf(made) === key ? post("/v1/push/subscribe", made.toJSON()) : turnOn(key))
		}
	} catch (err) {
		button.title = err.message // the role may be view
	}
}

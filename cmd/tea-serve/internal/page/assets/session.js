// The token of the page, and the last answers of the server, which are shown while it is
// away. Other requests than those of the page never see them.
const stored = "tea-token"
const cacheName = "tea-data"

// maxKept is how many answers are kept, maxLength the length of each.
const maxKept = 100
export const maxLength = 1 << 20

// token returns the token, null if there is none.
export function token() {
	return localStorage.getItem(stored) ?? sessionStorage.getItem(stored)
}

// logIn keeps a token until the tab is closed, or until the user logs out.
export function logIn(text, stay) {
	removeToken()
	const storage = stay ? localStorage : sessionStorage
	storage.setItem(stored, text)
}

function removeToken() {
	localStorage.removeItem(stored)
	sessionStorage.removeItem(stored)
	sessionStorage.removeItem("tea-role")
}

// logOut removes the token and the answers.
export async function logOut() {
	removeToken()
	await forget()
}

// forget removes the answers.
export async function forget() {
	await globalThis.caches?.delete(cacheName)
}

// lasting reports whether answers to a token may be kept: the server needs none, or the
// user stays logged in.
function lasting(used) {
	return Boolean(globalThis.caches) && used === token() && (used === null || localStorage.getItem(stored) !== null)
}

// keep keeps the answer to a request that was made with a token.
export async function keep(path, text, used) {
	if (!lasting(used) || text.length > maxLength || /^\/v1\/(changes|push)|[?&]known=/.test(path)) {
		return
	}
	const cache = await caches.open(cacheName)
	await cache.put(path, new Response(text, {headers: {date: new Date().toUTCString()}}))
	for (const request of (await cache.keys()).slice(0, -maxKept)) {
		await cache.delete(request)
	}
}

// recall returns the last answer to a request, null if there is none.
export async function recall(path) {
	const answer = lasting(token()) ? await caches.match(path.replace(/&known=\d+/, ""), {cacheName}) : null
	if (!answer) {
		return null
	}
	away(new Date(answer.headers.get("date")))
	return answer.text()
}

let seen = null // when the server has answered last
let oldest = null // the time of the oldest data that are shown while it is away

// away says that the server cannot be reached, and how old the data are.
export function away(at = seen) {
	oldest = at && oldest ? new Date(Math.min(at, oldest)) : at ?? oldest
	const banner = document.getElementById("away")
	banner.hidden = false
	banner.textContent = `The server cannot be reached.${oldest ? ` The page shows its data of ${oldest.toLocaleString()}, which may have changed.` : ""}`
}

// back says that the server has answered. It reports whether it was away.
export function back() {
	const banner = document.getElementById("away")
	const before = !banner.hidden
	seen = new Date()
	oldest = null
	banner.hidden = true
	return before
}

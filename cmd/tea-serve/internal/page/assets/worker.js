// Shows questions as notifications, and opens the one that is clicked.
addEventListener("install", () => skipWaiting())

addEventListener("push", event => {
	const {title, body, tag, path} = event.data.json()
	event.waitUntil(registration.showNotification(title, {body, tag, data: path, requireInteraction: true}))
})

addEventListener("notificationclick", event => {
	event.notification.close()
	event.waitUntil(clients.openWindow(event.notification.data))
})

// The library part of the plugin: it implements tea's plugin protocol
// (proto/tea/plugin/v1/plugin.proto). Your actions need only these names.
export { action, Bundle } from "./bundle.js";
export { ActionError } from "./error.js";
export { log } from "./log.js";
export { serve } from "./serve.js";

// Package checkup looks whether a machine is fit to run workflows. Start with
// [Run].
package checkup

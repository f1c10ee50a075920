// Package flow has the types that describe a run of a workflow: its events
// ([Event]), the interrupts at which it waits ([Interrupt]), its outcome
// ([Result], [Status]) and the errors that end it ([NodeError], [BudgetError]).
//
// Package host returns these values and passes them to callbacks; start there.
// The values are plain data. They can be copied and used concurrently as long
// as nothing that they refer to is changed.
package flow

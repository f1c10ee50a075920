package driver

import (
	"context"
	"errors"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/the-edge-agent/tea/host/flow"
)

// The search attributes of a run: the name of the workflow, the status of the run,
// and the node where it waits or failed.
var (
	workflowAttribute = temporal.NewSearchAttributeKeyKeyword("TeaWorkflow")
	statusAttribute   = temporal.NewSearchAttributeKeyKeyword("TeaStatus")
	nodeAttribute     = temporal.NewSearchAttributeKeyKeyword("TeaNode")
)

func attributeNames() []string {
	return []string{workflowAttribute.GetName(), statusAttribute.GetName(), nodeAttribute.GetName()}
}

// addAttributes adds the search attributes to the namespace.
func (c *connection) addAttributes(ctx context.Context) error {
	if c.hasAttributes(ctx) {
		return nil
	}
	types := map[string]enums.IndexedValueType{}
	for _, name := range attributeNames() {
		types[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	_, err := c.client.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: c.namespace, SearchAttributes: types})
	if errors.As(err, new(*serviceerror.AlreadyExists)) {
		return nil // another worker was faster
	}
	return err
}

// hasAttributes reports whether the namespace has the search attributes.
func (c *connection) hasAttributes(ctx context.Context) bool {
	list, err := c.client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: c.namespace})
	if err != nil {
		return false
	}
	for _, name := range attributeNames() {
		if list.GetCustomAttributes()[name] != enums.INDEXED_VALUE_TYPE_KEYWORD {
			return false
		}
	}
	return true
}

// attribute sets the search attributes. Each call is an event of the history.
func (r *run) attribute(w workflow.Context, status flow.Status, node string) {
	if !r.start.Attributes {
		return
	}
	at := nodeAttribute.ValueUnset()
	if node != "" {
		at = nodeAttribute.ValueSet(node)
	}
	_ = workflow.UpsertTypedSearchAttributes(w, statusAttribute.ValueSet(string(status)), at) // only fails without the attributes
}

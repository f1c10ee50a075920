package tabular

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers() {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			var opened storetest.Opened[*device]
			var dirs storetest.Dirs
			storetest.TableStore(t, func(t *testing.T) store.TableStore {
				return opened.Again(t, func() (*device, error) { return open(t, driver, dirs.Of(t)), nil })
			})
		})
	}
}

// Close closes the database.
func (d *device) Close() error {
	d.close()
	return nil
}

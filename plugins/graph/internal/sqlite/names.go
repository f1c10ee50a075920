package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// names maps namespaces and types to their numbers. Every name in memory is also
// stored.
type names struct {
	mu         sync.RWMutex
	namespaces map[string]int64
	kinds      map[string]int64
	kindNames  map[int64]string
}

func (n *names) load(ctx context.Context, db queryer) error {
	n.namespaces, n.kinds, n.kindNames = map[string]int64{}, map[string]int64{}, map[int64]string{}
	var pk int64
	var name string
	err := scan(ctx, db, "SELECT pk, name FROM namespace", nil, func() error { n.namespaces[name] = pk; return nil }, &pk, &name)
	if err != nil {
		return err
	}
	return scan(ctx, db, "SELECT pk, name FROM kind", nil, func() error { n.kinds[name], n.kindNames[pk] = pk, name; return nil }, &pk, &name)
}

// namespace returns the number of a namespace; false if nothing was ever stored in it.
func (n *names) namespace(name string) (int64, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	pk, ok := n.namespaces[name]
	return pk, ok
}

// kind returns the name of a type.
func (n *names) kind(pk int64) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.kindNames[pk]
}

// known returns the numbers of the types that were ever stored. It is nil only if
// types is empty.
func (n *names) known(types []string) []int64 {
	if len(types) == 0 {
		return nil
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	pks := make([]int64, 0, len(types))
	for _, t := range types {
		if pk, ok := n.kinds[t]; ok {
			pks = append(pks, pk)
		}
	}
	return pks
}

// intern assigns numbers to new names and stores them. It returns the numbers of all.
// An unused name is harmless.
func (n *names) intern(ctx context.Context, db *sql.DB, namespace string, types map[string]int64) (int64, error) {
	n.mu.RLock()
	ns, known := n.namespaces[namespace]
	missing := []string{}
	for t := range types {
		pk, ok := n.kinds[t]
		types[t] = pk
		if !ok {
			missing = append(missing, t)
		}
	}
	n.mu.RUnlock()
	if known && len(missing) == 0 {
		return ns, nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	if !known {
		if err := tx.QueryRowContext(ctx, "INSERT INTO namespace (name) VALUES (?) ON CONFLICT (name) DO UPDATE SET name = name RETURNING pk", namespace).Scan(&ns); err != nil {
			return 0, err
		}
	}
	for _, t := range missing {
		var pk int64
		if err := tx.QueryRowContext(ctx, "INSERT INTO kind (name) VALUES (?) ON CONFLICT (name) DO UPDATE SET name = name RETURNING pk", t).Scan(&pk); err != nil {
			return 0, err
		}
		types[t] = pk
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.namespaces[namespace] = ns
	for _, t := range missing {
		n.kinds[t], n.kindNames[types[t]] = types[t], t
	}
	return ns, nil
}

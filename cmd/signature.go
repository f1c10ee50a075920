//go:build !noplugins

package teacmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"github.com/the-edge-agent/tea/host/bundles"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// keyPassword is the variable with the password of a secret key.
const keyPassword = "TEA_KEY_PASSWORD"

type bundleKeygenCmd struct {
	Output     string `short:"o" default:"tea" placeholder:"NAME" help:"Write NAME.key and NAME.pub. Default: tea."`
	NoPassword bool   `help:"Do not encrypt the secret key."`
}

func (c *bundleKeygenCmd) Run(a *app) error {
	secretFile, publicFile := c.Output+".key", c.Output+".pub"
	if err := checkOutput(secretFile); err != nil {
		return usageErrorf("--output: %w", err)
	}
	for _, file := range []string{secretFile, publicFile} {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return usageErrorf("%s already exists; use another name with -o", file)
		}
	}
	password := ""
	if !c.NoPassword {
		var err error
		if password, err = a.newPassword(); err != nil {
			return err
		}
	}
	key, err := bundles.GenerateKey()
	if err != nil {
		return err
	}
	secret, public, err := key.Marshal(password)
	if err != nil {
		return err
	}
	if err := storeFile(secretFile, secret, 0o600); err != nil {
		return bundleError(err)
	}
	if err := storeFile(publicFile, public, 0o644); err != nil {
		return bundleError(err)
	}
	fmt.Fprintf(a.out, "%s: the secret key, keep it safe\n%s: the public key %s\n", inLine(secretFile), inLine(publicFile), key.Public())
	return nil
}

func storeFile(name string, data []byte, mode fs.FileMode) error {
	return writeFile(name, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// newPassword asks twice for a password that is not empty.
func (a *app) newPassword() (string, error) {
	first, err := a.password("password of the new secret key: ")
	if err != nil || a.getenv(keyPassword) != "" {
		return first, err
	}
	if first == "" {
		return "", usageErrorf("the password is empty; use --no-password for a key without one")
	}
	again, err := a.password("repeat the password: ")
	if err == nil && first != again {
		err = usageErrorf("the passwords differ")
	}
	return first, err
}

// password returns the password of a secret key: from the environment, or from
// the terminal.
func (a *app) password(prompt string) (string, error) {
	if text := a.getenv(keyPassword); text != "" {
		return text, nil
	}
	in, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return "", usageErrorf("the secret key needs a password, and there is no terminal to ask for it; set %s", keyPassword)
	}
	fmt.Fprint(a.stderr, prompt)
	text, err := readPassword(int(in.Fd()))
	fmt.Fprintln(a.stderr)
	return text, err
}

// readPassword reads a line without echo. A signal restores the terminal before
// it ends the command.
func readPassword(terminal int) (string, error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	ctx, stop := stoppable()
	defer stop(nil)
	type answer struct {
		text []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := term.ReadPassword(terminal)
		answers <- answer{text, err}
	}()
	select {
	case got := <-answers:
		if got.err != nil {
			return "", fmt.Errorf("read the password: %w", got.err)
		}
		return string(got.text), nil
	case <-ctx.Done():
		return "", errors.Join(&exitError{code: exitStopped}, term.Restore(terminal, before))
	}
}

type bundleSignCmd struct {
	Files []string `arg:"" name:"file" help:"Bundles."`
	Key   string   `short:"k" required:"" placeholder:"FILE" help:"The secret key."`
}

func (c *bundleSignCmd) Run(a *app) error {
	data, err := confine.ReadRegular(c.Key, 4096)
	if err != nil {
		return usageErrorf("--key: %w", err)
	}
	key, err := bundles.ParseSecretKey(data, func() (string, error) { return a.password("password of " + c.Key + ": ") })
	if err != nil {
		return usageErrorf("--key %s: %w", c.Key, err)
	}
	for _, file := range c.Files {
		if err := sign(file, key); err != nil {
			return bundleError(err)
		}
		fmt.Fprintf(a.out, "%s: signed by key %s\n", inLine(file), key.Public().ID())
	}
	return nil
}

func sign(file string, key bundles.SecretKey) error {
	b, err := bundles.Open(file)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Check(); err != nil {
		return err
	}
	return storeFile(file+bundles.SignatureSuffix, b.Sign(key), 0o644)
}

type bundleVerifyCmd struct {
	Files []string `arg:"" optional:"" name:"file" help:"Bundles. Default: everything that is installed."`
	Key   []string `short:"k" sep:"none" placeholder:"KEY|FILE" help:"Require a signature by this public key (repeatable: by one of them)."`
	reportFlags
}

func (c *bundleVerifyCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	keys, err := a.keys(c.Key)
	if err != nil {
		return err
	}
	if len(c.Files) == 0 {
		return c.store(a, keys)
	}
	var faults bundles.BundleErrors
	for _, file := range c.Files {
		text, err := verify(file, keys)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		fmt.Fprintf(a.out, "%s: %s\n", inLine(file), text)
	}
	return a.bundleErrors(faults)
}

// verify checks one bundle completely and describes it.
func verify(file string, keys [][]bundles.Key) (string, error) {
	b, err := bundles.Open(file)
	if err != nil {
		return "", err
	}
	defer b.Close()
	signed, unverified, err := bundles.Verify(b, file, keys)
	if err != nil {
		return "", err
	}
	if err := b.Check(); err != nil {
		return "", err
	}
	text := b.Index.Manifest.Name + " " + b.Index.Manifest.Version + " is intact, "
	switch {
	case signed != nil:
		return text + "signed by key " + signed.Key.ID(), nil
	case unverified != "":
		return text + "signature by key " + unverified + " not verified (pass --key)", nil
	}
	return text + "not signed", nil
}

// store checks everything that is installed.
func (c *bundleVerifyCmd) store(a *app, keys [][]bundles.Key) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	faults := store.Verify()
	installed, err := store.List()
	if err != nil && len(faults) == 0 {
		faults = append(faults, err)
	}
	policy := bundles.Policy{Store: store, Keys: keys}
	for _, in := range installed {
		if in.Active < 0 || len(keys) == 0 {
			continue
		}
		if err := policy.Verify(in.Name, in.Versions[in.Active].Binary()); err != nil {
			faults = append(faults, fmt.Errorf("plugin %s: %w", in.Name, err))
		}
	}
	for _, fault := range faults {
		a.printError(fault)
	}
	if len(faults) > 0 {
		return &exitError{code: exitPlugin}
	}
	fmt.Fprintf(a.out, "%s intact\n", numbered(len(installed), "installed plugin"))
	return nil
}

type bundleLockCmd struct {
	Names []string `arg:"" optional:"" name:"name" help:"Names of plugins. The others in the lock stay as they are. Default: exactly those that are found."`
	Dir   string   `default:"." placeholder:"DIR" help:"The directory of tea.lock: the project's or a workflow's. Default: the working directory."`
	Check bool     `help:"Change nothing; report plugins that are missing or differ from the lock."`
	pluginFlags
	reportFlags
}

// Run writes or checks the lock.
func (c *bundleLockCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	file := filepath.Join(c.Dir, bundles.LockName)
	if _, err := os.Readlink(file); err != nil && !c.Check { // a link is replaced
		if err := checkOutput(file); err != nil {
			return usageError(err)
		}
	}
	policy, err := a.policyOf() // without the lock
	if err != nil {
		return err
	}
	found, problems, err := a.subprocessesUnder(policy, nil, c.pluginFlags, a.logger(c.reportFlags), readPlugins)
	if err != nil {
		return err
	}
	defer found.Close() //nolint:errcheck // nothing was started
	for _, p := range problems {
		a.logger(c.reportFlags).Warn("plugin problem: "+p.Path, "error", p.Message)
	}
	var plugins []bundles.Plugin
	for _, b := range found.Bundles() {
		plugins = append(plugins, bundles.Plugin{Manifest: b.Manifest, Path: b.Path})
	}
	lock, err := bundles.ReadLock(file)
	if c.Check {
		for _, b := range found.UnreadBundles() { // the binary is enough
			plugins = append(plugins, bundles.Plugin{Manifest: tea.Manifest{Name: b.Name}, Path: b.Path})
		}
		return c.check(a, lock, err, plugins)
	}
	if errors.Is(err, fs.ErrNotExist) || err != nil && len(c.Names) == 0 {
		lock, err = nil, nil // a damaged lock is replaced as a whole
	}
	if err != nil {
		return pluginError(err)
	}
	if lock, err = bundles.UpdateLock(policy.Store, plugins, found.Unread(), lock, c.Names); err != nil {
		return pluginError(err)
	}
	if err := lock.Write(file); err != nil {
		return bundleError(unwritable(file, err))
	}
	fmt.Fprintf(a.out, "%s: %s\n", inLine(file), numbered(len(lock.Plugins), "plugin"))
	return nil
}

func (c *bundleLockCmd) check(a *app, lock *bundles.Lock, err error, plugins []bundles.Plugin) error {
	if errors.Is(err, fs.ErrNotExist) {
		return pluginError(fmt.Errorf("there is no %s; `tea plugin lock` writes it", filepath.Join(c.Dir, bundles.LockName)))
	}
	if err != nil {
		return pluginError(err)
	}
	faults := bundles.CheckLock(lock, plugins)
	for _, fault := range faults {
		a.printError(fault)
	}
	if len(faults) > 0 {
		return &exitError{code: exitPlugin}
	}
	fmt.Fprintf(a.out, "%s: all plugins are as locked\n", inLine(lock.Path()))
	return nil
}

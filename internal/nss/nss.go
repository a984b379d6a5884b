// Package nss looks up accounts and groups in all sources that nsswitch.conf(5) names, such as
// LDAP, SSSD or Active Directory. It runs getent(1) for sources other than /etc/passwd and
// /etc/group, because statically linked programs can read only these two files themselves.
package nss

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// timeout is the time limit of a lookup. Without it, getent may wait for minutes if a directory
// server is down.
var timeout = 10 * time.Second

// atOnce is the maximum number of concurrent getent processes.
const atOnce = 16

// programs lists the paths at which getent is found on most distributions and on NixOS.
var programs = []string{"/usr/bin/getent", "/bin/getent", "/run/current-system/sw/bin/getent"}

// Program returns the path of getent(1), or "" if the host does not have it.
func Program() string {
	for _, path := range programs {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// Lookup returns the Unix account with the given name, from any source that the host is configured
// to use. If there is no such account, the error is a user.UnknownUserError. Any other error means
// that the lookup failed.
func Lookup(name string) (*user.User, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return lookup(ctx, name)
}

// Found is the result of LookupAll for one name.
type Found struct {
	User *user.User
	Err  error
}

// LookupAll looks up several accounts at the same time, and returns the results by name. It takes
// no longer than the time limit of one Lookup, even if a directory server is down.
func LookupAll(names []string) map[string]Found {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var mu sync.Mutex
	found := make(map[string]Found, len(names))
	var lookups sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		lookups.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			u, err := lookup(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			found[name] = Found{u, err}
		})
	}
	lookups.Wait()
	return found
}

func lookup(ctx context.Context, name string) (*user.User, error) {
	u, err := user.Lookup(name)
	if err == nil || !plain(name) {
		return u, err
	}
	fields, err := getent(ctx, "passwd", name, 7)
	if errors.Is(err, errUnknown) {
		return nil, user.UnknownUserError(name)
	}
	if err != nil {
		return nil, fmt.Errorf("account %s: %w", name, err)
	}
	return account(fields), nil
}

// LookupID returns the Unix account with the given uid. If there is no such account, the error is a
// user.UnknownUserIdError.
func LookupID(uid int) (*user.User, error) {
	text := strconv.Itoa(uid)
	u, err := user.LookupId(text)
	if err == nil {
		return u, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	fields, err := getent(ctx, "passwd", text, 7)
	switch {
	case errors.Is(err, errUnknown), err == nil && fields[2] != text: // getent found an account whose name is this number
		return nil, user.UnknownUserIdError(uid)
	case err != nil:
		return nil, fmt.Errorf("uid %d: %w", uid, err)
	}
	return account(fields), nil
}

// Current returns the account under which this process runs.
func Current() (*user.User, error) {
	u, err := LookupID(os.Getuid())
	if err != nil {
		return user.Current()
	}
	return u, nil
}

// LookupGroup returns the Unix group with the given name. If there is no such group, the error is a
// user.UnknownGroupError.
func LookupGroup(name string) (*user.Group, error) {
	g, err := user.LookupGroup(name)
	if err == nil || !plain(name) {
		return g, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	fields, err := getent(ctx, "group", name, 4)
	if errors.Is(err, errUnknown) {
		return nil, user.UnknownGroupError(name)
	}
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", name, err)
	}
	return &user.Group{Name: fields[0], Gid: fields[2]}, nil
}

func account(fields []string) *user.User {
	return &user.User{Username: fields[0], Uid: fields[2], Gid: fields[3], Name: fields[4], HomeDir: fields[5]}
}

// plain reports whether getent looks up its argument as a name. It would look up a number as an ID.
func plain(name string) bool {
	_, err := strconv.ParseUint(name, 10, 64)
	return err != nil && name != "" && !strings.ContainsAny(name, ":\n\x00")
}

// errUnknown is the error of getent for a key that no source contains.
var errUnknown = errors.New("unknown")

// getent runs getent(1) and returns the fields of the entry that it finds. The argument fields is
// the number of fields that an entry of this database must have.
func getent(ctx context.Context, database, key string, fields int) ([]string, error) {
	program := Program()
	if program == "" { // as in a container, where only files are used
		return nil, errUnknown
	}
	cmd := exec.CommandContext(ctx, program, database, "--", key)
	cmd.Env, cmd.Stdin = []string{"LC_ALL=C"}, strings.NewReader("") // a pipe: the forwarder may not open /dev/null
	out, err := cmd.Output()
	var exit *exec.ExitError
	const missing = 2 // exit status of getent(1)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("getent %s has not answered for %s: see its sources in /etc/nsswitch.conf", database, timeout)
	case errors.As(err, &exit) && exit.ExitCode() == missing:
		return nil, errUnknown
	case errors.As(err, &exit) && len(exit.Stderr) > 0:
		return nil, fmt.Errorf("getent %s: %w: %s", database, err, bytes.TrimSpace(exit.Stderr))
	case err != nil:
		return nil, fmt.Errorf("getent %s: %w", database, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	found := strings.Split(line, ":")
	if len(found) != fields {
		return nil, fmt.Errorf("getent %s %s: answered %.100q, want %d fields", database, key, line, fields)
	}
	return found, nil
}

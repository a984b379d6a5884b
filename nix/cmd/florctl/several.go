package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/florete/florete/internal/terminal"
)

// What a command reads or does goes to all config providers of a cluster or to the first that
// answers. Those that do not answer are named in a warning; the command fails when none does.

// errPartly ends florctl with 2, once warnings name the providers that did not take what others did.
var errPartly = errors.New("only some providers took it")

// all calls do with each provider.
func (p published) all(do func(provider) error) error { return all(p.providers, do) }

func all(providers []provider, do func(provider) error) error {
	var failed []error
	for _, at := range providers {
		if err := do(at); err != nil {
			failed = append(failed, err)
		}
	}
	return someFailed(failed, len(providers))
}

// first calls do with one provider after the other, until one succeeds.
func (p published) first(do func(provider) error) error {
	var failed []error
	for _, at := range p.providers {
		err := do(at)
		if err == nil {
			break
		}
		failed = append(failed, err)
	}
	return someFailed(failed, len(p.providers))
}

// each collects what providers have, once: those that share a store have the same.
func each[V any](p published, of func(provider) ([]V, error), key func(V) string) ([]V, error) {
	found, seen := []V{}, map[string]bool{}
	err := p.all(func(at provider) error {
		some, err := of(at)
		for _, v := range some {
			if !seen[key(v)] {
				seen[key(v)] = true
				found = append(found, v)
			}
		}
		return err
	})
	return found, err
}

// someFailed warns of providers that do not answer, and fails when none does.
func someFailed(failed []error, of int) error {
	if len(failed) == of {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		fmt.Fprintln(terminal.Writer(os.Stderr), "warning:", err)
	}
	return nil
}

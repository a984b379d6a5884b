package published

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/florete/florete/providers/file"
)

// Ask calls a path of the control API that belongs to a kind of need, such as "file", and decodes
// the answer. It sends a value in a POST request or, if the value is nil, a GET request. Ask calls
// config providers on hosts that provide the kind, until one of them answers, and returns the name
// of its host. It returns an error for providers that are called over SSH.
func (c Cluster) Ask(ctx context.Context, kind, path string, about, answer any) (host string, err error) {
	hosts := c.Topology.Providers[kind].Hosts
	instead := "" // alternative for operators
	if kind == file.Name {
		instead = ", or put files into its directory"
	}
	var failed []error
	for _, at := range c.Providers {
		if !slices.Contains(hosts, at.Host) {
			continue
		}
		if at.OverSSH() {
			return "", fmt.Errorf("--via ssh does not lead to the process of kind %s: call it through the forwarder%s", kind, instead)
		}
		if about == nil {
			err = at.Get(ctx, path, answer)
		} else {
			err = at.Post(ctx, path, about, answer)
		}
		if err == nil {
			return at.Host, c.Providers.Failed(failed)
		}
		failed = append(failed, err)
	}
	switch {
	case len(failed) > 0:
		return "", errors.Join(failed...)
	case len(hosts) == 0:
		return "", fmt.Errorf("cluster %s: no host provides %q: write providers.%[2]s.hosts", c.Topology.Name, kind)
	}
	return "", fmt.Errorf("cluster %s: %s provides %q but no documents, and operators reach providers only on hosts that provide documents: name it in providers.config.hosts%s",
		c.Topology.Name, strings.Join(hosts, ", "), kind, instead)
}

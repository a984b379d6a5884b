package compile

import (
	"context"
	"strings"
)

// NixOSHosts are the names of the systems that the flake has as nixosConfigurations.
func NixOSHosts(ctx context.Context, src Source) (names []string, err error) {
	err = run(ctx, []string{"eval", src.ref() + "#nixosConfigurations"}, append([]string{"--apply", "builtins.attrNames"}, src.Args...), &names)
	if err != nil && strings.Contains(err.Error(), "the flake has no such output") {
		return nil, nil
	}
	return names, err
}

// Ref is the flake reference that Nix is given.
func (s Source) Ref() string { return s.ref() }

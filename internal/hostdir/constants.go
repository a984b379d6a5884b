// Code generated from nix/lib/constants.nix by go test ./nix/operator/compile -run Constants -update. DO NOT EDIT.

package hostdir

const (
	InstancePattern = "[a-z]([a-z0-9-]{0,12}[a-z0-9])?"
	Prefix          = "florete"
)

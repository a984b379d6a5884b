// Code generated from nix/lib/constants.nix by go test ./nix/operator/compile -run Constants -update. DO NOT EDIT.

package spiffe

const (
	CacheGroup      = "nix-cache"
	CacheService    = "florete-cache"
	ControlGroup    = "control-plane"
	ControlService  = "florete-control"
	GroupPattern    = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*"
	HostnamePattern = "([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
	LabelPattern    = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
	ProviderPrefix  = "florete-provider-"
	ReservedPrefix  = "florete-"
	Suffix          = ".rete"
	WriteSuffix     = "-write"
)

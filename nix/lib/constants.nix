# What the compiler and the programs in Go both know, by the Go package that has it as constants:
# go test ./nix/operator/compile -run Constants -update writes internal/<package>/constants.go. Patterns are
# POSIX extended regular expressions that Go reads as well, and match a whole text.
let
  label = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
in
{
  spiffe = {
    # A DNS label in lower case (RFC 1123, section 2.1): the names of hosts, services, users, ….
    labelPattern = label;
    # Host groups, from the outside in: "eu/fra".
    groupPattern = "${label}(/${label})*";
    # A DNS name whose last label is not a number: 10.0.0.300 is a mistake, no name.
    hostnamePattern = "(${label}\\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?";

    # What every name that callers use ends in.
    suffix = ".rete";

    # Services whose names begin so are reserved.
    reservedPrefix = "florete-";
    # The service that answers a kind of need on a provider host: this and the kind.
    providerPrefix = "florete-provider-";
    # The service by which operators reach the config provider of a host, and the group of services
    # for those who read there; those who also act there have the group with "-write" after it.
    controlService = "florete-control";
    controlGroup = "control-plane";
    # The same for the Nix binary cache there.
    cacheService = "florete-cache";
    cacheGroup = "nix-cache";
    writeSuffix = "-write";
  };
  hostdir = {
    # Which of its clusters a host runs beside others, and what everything of an instance is called
    # after: florete, or florete_<instance>.
    instancePattern = "[a-z]([a-z0-9-]{0,12}[a-z0-9])?";
    prefix = "florete";
  };
}

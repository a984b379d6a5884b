# Constants that the compiler shares with Go, by Go package: go test ./nix/operator/compile -run
# Constants -update writes internal/<package>/constants.go. Patterns are POSIX extended regular
# expressions that Go accepts too, and match a whole text.
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

    # The suffix of every name that callers use.
    suffix = ".rete";

    # The prefix of the names of reserved services.
    reservedPrefix = "florete-";
    # The name of the service that answers a kind of need on a provider host, without the kind.
    providerPrefix = "florete-provider-";
    # The service through which operators reach the config provider of a host, and the group of
    # services for reading there. The group for writing has the suffix "-write".
    controlService = "florete-control";
    controlGroup = "control-plane";
    # The same for the Nix binary cache.
    cacheService = "florete-cache";
    cacheGroup = "nix-cache";
    writeSuffix = "-write";
  };
  hostdir = {
    # The name of a further cluster on a host. Everything of that instance begins with
    # florete_<instance> instead of florete.
    instancePattern = "[a-z]([a-z0-9-]{0,12}[a-z0-9])?";
    prefix = "florete";
  };
}

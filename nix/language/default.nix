# The topology language: every record, its attributes, what they are for, their types and
# defaults. docs/reference/topology.md is written from it.
let
  inherit (builtins)
    attrNames
    attrValues
    filter
    foldl'
    intersectAttrs
    isAttrs
    isString
    listToAttrs
    mapAttrs
    tryEval
    ;
  inherit (import ./types)
    attrsOf
    between
    default
    extended
    listOf
    named
    of
    record
    required
    scalar
    ;
  inherit (import ./formats)
    clusterName
    date
    groupPattern
    name
    pem
    signingKey
    string
    strings
    tags
    trustDomain
    word
    ;
  kinds = import ../kinds;
  names = import ../lib/names.nix;

  host = import ./host.nix;
  limits = import ./limits.nix;
  rollout = import ./rollout.nix;
  service = import ./service.nix;

  provider =
    kind:
    of kind.doc (
      record "a provider" (
        {
          hosts = required (
            if kind ? alone then
              "where it runs: one host, since ${kind.alone}"
            else
              "where it runs, in order of preference${if kind ? apart then "; several: ${kind.apart}" else ""}"
          ) "[ \"host\" ]" strings;
          requires = of "capabilities its hosts must have" tags;
        }
        // kind.settings
      )
    );

  acknowledgement = record "an acknowledgement" {
    id = required "of the rule" "\"FL041\"" (word {
      want = "the id of a rule";
      hint = "write for example \"FL041\"";
      re = "FL[0-9]{3}";
    });
    place = required "where it warns, as it says" "\"services.wiki\"" string;
    reason = required "why this is as it should be" "\"…\"" (scalar {
      want = "a reason";
      hint = "say why this is as it should be";
      ok = v: isString v && v != "";
    });
  };

  # Sets of things with names of their own.
  entries = {
    hosts = named { what = "host"; } host;
    # Needs are named "cert-service-<name>" and "cert-user-<name>": DNS labels too.
    services = named {
      what = "service";
      max = 50;
      reserved = [
        names.cache
        names.control
      ]
      ++ map names.provider (attrNames kinds);
    } service;
    users =
      named
        {
          what = "user";
          max = 53;
        }
        (
          record "a user" {
            roles = of "what the user may reach" strings;
            until = of "roles up to a time: `{ chief = \"2027-01-31\"; }`; hosts end them then by themselves, with connections" (attrsOf date);
            limits = limits 8192 "what the user may have at each host that publishes what the user reaches";
          }
        );
    teams = named { what = "team"; } (
      record "a team" {
        users = of "who is in it" strings;
        usersUntil = of "who is in it up to a time: `{ ben = \"2027-01-31\"; }`; hosts end then what the team gives" (attrsOf date);
        teams = of "whose people are in it too" strings;
        roles = of "what they may reach" strings;
        until = of "roles up to a time, as of users" (attrsOf date);
      }
    );
    # Needs are named "federation-<name>".
    federated = named {
      what = "federation";
      max = 52;
    } (import ./federated.nix);
    clusters = named { what = "cluster"; } (
      record "another cluster" (
        import ./elsewhere.nix { called = "wiki.demo.flor.rete"; }
      )
    );
    roles = named { what = "role"; } (
      record "a role" {
        services = of "it reaches these; `\"shell@forge\"` is that of one host, `\"shell@eu\"` those of a group of hosts, or with a tag, of a service that each host has its own of; `\"tickets@blue\"` is `federated.blue.services.tickets`, or `clusters.blue.services.tickets`" strings;
        serviceGroups = of "it reaches the services in these" strings;
        roles = of "it reaches what these reach, and requires what they require" strings;
        except = of "but none of these, whatever else here leads to them; written as in `services`" strings;
        requires = of "capabilities of the host, when a node or service has this role" tags;
      }
    );
    serviceGroups = named { what = "group"; } strings;
  }
  // mapAttrs (_: e: e.type) ofKinds;

  # attribute → what a kind has there
  ofKinds = foldl' (all: k: all // k.entries or { }) { } (attrValues kinds);

  cluster = record "mkCluster" (attributes // mapAttrs (_: e: of e.doc e.type) ofKinds);

  attributes = {
    self = of "the flake: gives `serial` and `rev`" (scalar {
      want = "a flake";
      json = null;
      hint = "pass the flake's own self";
      zero = { };
      ok = builtins.isAttrs;
    });
    serial = default "orders versions of a document; `self.lastModified` unless written" null (
      between 0 9007199254740991 "a serial"
    );
    rev =
      default "tells people which version it is; `self.rev` or `self.dirtyRev` unless written" null
        string;
    name = required "of the cluster" "\"demo\"" clusterName;
    trustDomain = required "of its SPIFFE IDs" "\"demo.flor\"" trustDomain;
    trust = of "what hosts trust" (
      record "trust" {
        roots = of "certificates that hosts trust: paths of PEM files, or PEM text" (listOf pem);
        signingKeys = of "public keys in Nix format that sign documents for the network; needed with `providers.config`" (
          listOf signingKey
        );
      }
    );
    hosts = required "machines" "{ … }" entries.hosts;
    hostGroups =
      of "groups of hosts by path, `\"eu\"`, `\"eu/fra\"`; what they have, their hosts have"
        (
          named
            {
              what = "group of hosts";
              max = 4095;
              re = groupPattern;
              remedy = "use DNS labels with slashes between them, such as \"eu/fra\"";
            }
          (
            record "a group of hosts" {
              capabilities = of "of its hosts" tags;
              tags = of "of its hosts" tags;
              roles = of "of its nodes" strings;
              until = of "roles up to a time, as of users" (attrsOf date);
              users = of "who may act on its hosts" strings;
            }
          )
        );
    services = of "what is reached" entries.services;
    users = of "people" entries.users;
    teams = of "people who may reach the same" entries.teams;
    federated = of "foreign trust domains, and those of their identities that reach something here; with `providers.federation`" entries.federated;
    clusters = of "other clusters of this trust domain, by their names, and those of their identities that reach something here; no identity is of two of them" entries.clusters;
    roles = of "what their holders reach. `node` and `operator` must be there: every node has `node`, `operator` is given by hand" entries.roles;
    serviceGroups = of "sets of services for roles. `control-plane` and `control-plane-write` must be there: who reaches these may read, or also publish, at `providers.config`; `nix-cache` and `nix-cache-write` read and fill the binary cache there" entries.serviceGroups;
    providers = of "who answers needs, by kind" (
      extended
        (record "providers" (mapAttrs (_: provider) kinds // { store = import ./store.nix; }))
        "<kind>"
        (import ./own.nix).provider
    );
    inherit rollout;
    acknowledge = of "warnings that are as they should be" (listOf acknowledgement);
  };
in
{
  inherit cluster entries ofKinds;
  inherit (cluster) clean;

  # Faults of shape: { top = [ … ]; hosts.<name> = [ … ]; … }, each looked for once.
  faults =
    args:
    let
      # What is no set is a fault of the whole.
      sets =
        if !isAttrs args then
          { }
        else
          listToAttrs (
            filter (p: (tryEval (isAttrs p.value)).value) (
              attrValues (mapAttrs (name: value: { inherit name value; }) (intersectAttrs entries args))
            )
          );
    in
    {
      top = cluster.faults "" (if isAttrs args then args // mapAttrs (_: _: { }) sets else args);
    }
    // mapAttrs (kind: type: mapAttrs (type.entry kind) sets.${kind} or { }) entries;
}

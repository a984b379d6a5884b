# The topology language: all records, with the attributes of each, their purpose, types and
# defaults. docs/reference/topology.md is generated from this description.
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
    atMost
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
    salt
    signingKey
    string
    strings
    tags
    tlsName
    trustDomain
    word
    ;
  kinds = import ../kinds;
  names = import ../lib/names.nix;
  inherit (import ../lib/constants.nix) spiffe;

  host = import ./host.nix;
  people = import ./people.nix;
  rollout = import ./rollout.nix;
  service = import ./service.nix;
  signin = import ./signin.nix;

  provider =
    kind:
    of kind.doc (
      record "a provider" (
        {
          hosts = required (
            if kind ? alone then
              "Hosts on which it runs, in order of preference. Without `providers.store` one host only, since ${kind.alone}."
            else
              "Hosts on which it runs, in order of preference.${if kind ? apart then " Several hosts without `providers.store` are independent: ${kind.apart}." else ""}"
          ) "[ \"host\" ]" strings;
          requires = of "Capabilities that its hosts must have." tags;
        }
        // kind.settings
      )
    );

  acknowledgement = record "an acknowledgement" {
    id = required "Number of the warning." "\"FL041\"" (word {
      want = "the id of a rule";
      hint = "write for example \"FL041\"";
      re = "FL[0-9]{3}";
    });
    place = required "Place of the warning, as its text has it." "\"services.wiki\"" string;
    reason = required "Reason why the topology is intended to be like this." "\"…\"" (scalar {
      want = "a reason";
      hint = "say why this is as it should be";
      ok = v: isString v && v != "";
    });
  };

  # Sets of named things.
  entries = {
    hosts = named { what = "host"; } host;
    # Their needs are named "cert-service-<name>" and "cert-user-<name>", which are DNS labels too.
    services = named {
      what = "service";
      max = 50;
      reserved = [
        names.cache
        names.control
      ]
      ++ map names.provider (attrNames kinds);
    } service;
    users = named {
      what = "user";
      max = 53;
    } people.user;
    teams = named { what = "team"; } people.team;
    # Their needs are named "federation-<name>".
    federated = named {
      what = "federation";
      max = 52;
    } (import ./federated.nix);
    clusters = named { what = "cluster"; } (
      record "another cluster" (
        import ./elsewhere.nix { called = "wiki.demo.flor.rete"; }
        // {
          oidc = of "Issuer of the other cluster, at which services here sign people in with `sso.cluster`." signin.issuer;
          clients =
            of
              "Services of the other cluster that sign people in at the issuer of this one, by the part of their SPIFFE ID after `service/`: `\"wiki\"`, `\"forge/wiki\"`."
              (attrsOf signin.elsewhere);
        }
      )
    );
    roles = named { what = "role"; } (import ./role.nix);
    serviceGroups = named { what = "group"; } strings;
    outside = import ./outside.nix;
  }
  // mapAttrs (_: e: e.type) ofKinds;

  # attribute → the entry of a kind for it
  ofKinds = foldl' (all: k: all // k.entries or { }) { } (attrValues kinds);

  cluster = record "mkCluster" (attributes // mapAttrs (_: e: of e.doc e.type) ofKinds);

  attributes = {
    self = of "The flake itself, from which `serial` and `rev` come. Write `inherit self;`." (scalar {
      want = "a flake";
      json = null;
      hint = "pass the flake's own self";
      zero = { };
      ok = builtins.isAttrs;
    });
    serial =
      default
        "Number that orders the versions of documents. By default `self.lastModified`, in seconds since 1970."
        null
        (between 0 9007199254740991 "a serial");
    rev = default "Revision that people see. By default `self.rev` or `self.dirtyRev`." null string;
    name = required "Name of the cluster." "\"demo\"" clusterName;
    trustDomain = required "Trust domain of the SPIFFE IDs." "\"demo.flor\"" trustDomain;
    trust = of "Certificates and keys that hosts trust." (
      record "trust" {
        roots = of "Root certificates that hosts trust: paths of PEM files, or PEM text." (listOf pem);
        signingKeys = of "Public keys, in Nix format, that verify documents from the network. Required with `providers.config`." (
          listOf signingKey
        );
        threshold =
          default
            "Number of different keys in `signingKeys` that must sign each document, revocation list and admission of a device. With 2, one stolen key is not enough to publish."
            1
            (between 1 16 "keys");
      }
    );
    pathSalt =
      of "Random text from which relays get names for hosts and services that only your cluster can make. `florctl init` writes it. Needed where a host is `hidden`. No document has it."
        salt;
    hosts = required "Machines of the cluster." "{ … }" entries.hosts;
    hostGroups =
      of "Groups of hosts by path, such as `\"eu\"` and `\"eu/fra\"`. The hosts of a group have everything that the group has."
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
              capabilities = of "The hosts of the group have these, too." tags;
              tags = of "The hosts of the group have these, too." tags;
              roles = of "Roles of the nodes of the group." strings;
              until = of "Roles up to a time, as for users." (attrsOf date);
              users = of "Users who may act on the hosts of the group." strings;
              relays = of "Relays of the hosts of the group that have no `relays` of their own, nor from a group further in." (
                atMost 4 name
              );
            }
          )
        );
    services = of "Services that callers reach by name." entries.services;
    users = of "People." entries.users;
    teams = of "Teams: people who have the same roles." entries.teams;
    federated = of "Foreign trust domains: their identities that have roles here, and their services that roles here lead to. Needs `providers.federation`." entries.federated;
    clusters = of "Other clusters of this trust domain, by name: their identities that have roles here, and their services that roles here lead to. No identity may be in two of them." entries.clusters;
    outside = of "Machines without an agent, such as a scanner or a web server elsewhere. They reach services through a host of the cluster. Without `mtls`, nothing proves who they are: anyone who has one of their addresses is taken for them." entries.outside;
    roles = of "Roles: what their holders reach. `node` and `operator` must be declared. Every node has the role `node`; you give `operator` to single users, services or nodes." entries.roles;
    serviceGroups = of "Groups of services, for roles. `control-plane` and `control-plane-write` must be declared: holders of a role with the first may read at `providers.config`, with the second also publish and revoke. `nix-cache` and `nix-cache-write` permit to read and to fill the binary cache." entries.serviceGroups;
    providers = of "Providers, which answer the needs of hosts, by kind of need." (
      extended
        (record "providers" (mapAttrs (_: provider) kinds // { store = import ./store.nix; }))
        "<kind>"
        (import ./own.nix).provider
    );
    redirects =
      of
        "Public names whose visitors an ingress redirects to the public name of a service: `{ \"www.example.org\" = \"example.org\"; }`. The path and the query are kept."
        (
          named {
            what = "redirected";
            max = 253;
            re = "(${spiffe.labelPattern}\\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?";
            remedy = "write a public DNS name, lower-case, such as \"www.example.org\"";
          } tlsName
        );
    inherit rollout;
    expect = of "Tests of access. The topology has a fault if one of them is untrue. Nothing else depends on them." (
      listOf (
        record "a test of access" {
          who = required "User, host or service that is tested. If several have the name, write `\"user/alice\"`, `\"node/forge\"` or `\"service/wiki\"`. `\"group/writers\"` stands for people who are in this group of the issuer and in no other." "\"alice\"" string;
          reaches = of "Services that it must reach, as a whole, written as in `roles.<name>.services`. A role with an end counts until then. A group reaches the services to which its people may sign in." strings;
          not = of "Services of which it must not reach any part, written in the same way." strings;
        }
      )
    );
    acknowledge = of "Warnings that are intended and no longer shown." (listOf acknowledgement);
  };
in
{
  inherit cluster entries ofKinds;
  inherit (cluster) clean;

  # The faults of shape: { top = [ … ]; hosts.<name> = [ … ]; … }, each computed once.
  faults =
    args:
    let
      # A part that is no set has one fault, for the whole.
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

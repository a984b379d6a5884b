# Florete's compiler: a topology in, documents out. Pure builtins; see README.md
# for the language.
let
  inherit (builtins)
    attrNames
    attrValues
    concatLists
    concatMap
    elem
    filter
    intersectAttrs
    isAttrs
    mapAttrs
    toFile
    toJSON
    ;
  inherit (import ./lib/fault.nix) errors order report;
  language = import ./language;

  # A cluster from the cleaned topology and its faults of shape. It does not refer to the written
  # topology, which Nix can then free.
  cluster =
    clean: shapes:
    let
      topology = import ./resolve/topology.nix (
        (import ./resolve/reserved.nix).added (
          import ./resolve/teams.nix (
            (import ./resolve/outside.nix).added ((import ./resolve/foreign.nix).named clean)
          )
        )
      );
      access = import ./access topology;
      # A name of its own, because Nix evaluates the source of `inherit (…)` once for each name.
      needed = import ./documents/needs.nix (topology // { inherit access; });
      inherit (needed) wanted needs;
      scope = import ./check/scope.nix { inherit clean topology access; };

      checks = import ./check {
        inherit
          clean
          shapes
          topology
          access
          needs
          wanted
          ;
      };
      kinds = attrNames language.entries;
      everything = part: concatMap (kind: concatLists (attrValues part.${kind} or { })) kinds;
      some =
        part: names:
        concatMap (kind: concatMap (n: part.${kind}.${n} or [ ]) (attrNames names.${kind})) kinds;
      acknowledged = import ./check/acknowledge.nix clean;
      # FL041 reports services that nobody reaches, and FL157 untrue expectations of access. They are
      # left out if names or parts of the access are wrong.
      known =
        let
          granting = [
            "federated"
            "roles"
            "serviceGroups"
            "teams"
            "users"
          ];
          wrong = errors (
            concatMap (
              kind: concatLists (attrValues shapes.${kind} ++ attrValues checks.${kind} or { })
            ) granting
          );
          # Unknown names are not reported either if the section that should contain them is no set.
          named = {
            hosts = [
              "FL010"
              "FL044"
              "FL158"
            ];
            roles = [ "FL013" ];
            serviceGroups = [ "FL014" ];
            services = [
              "FL011"
              "FL158"
            ];
            teams = [ "FL096" ];
            users = [
              "FL012"
              "FL158"
            ];
          };
          lost = concatMap (f: named.${f.place} or [ ]) (filter (f: f.id == "FL002") shapes.top);
          without = lost ++ (if wrong == [ ] && lost == [ ] then [ ] else [ "FL041" "FL157" ]);
        in
        f: !elem f.id without;

      faults = order (
        filter known (
          acknowledged (
          shapes.top
          ++ everything shapes
          ++ checks.top
          ++ everything checks
          ++ checks.warnings.top
          ++ everything checks.warnings
        )
        )
      );
      # A provider host is blocked by every fault, because its policy concerns all hosts.
      faultsOf = mapAttrs (
        name: host:
        let
          part = scope name;
        in
        if host.kinds != [ ] then
          faults
        else
          order (
            filter (f: f.id != "FL157" && f.id != "FL158" || known f) (
              shapes.top ++ some shapes part.shapes ++ checks.top ++ some checks part.checks
            )
          )
      ) topology.hosts;

      valid =
        faults: value: if errors faults == [ ] then value else throw (report clean.name (errors faults));
      each = f: mapAttrs (host: faults: valid faults (f host)) faultsOf;

      manifest = import ./documents/manifest.nix {
        inherit
          topology
          access
          needs
          policyOf
          ;
      };
      rollout = import ./documents/rollout.nix { inherit clean topology; };
      policy = import ./documents/policy.nix {
        inherit topology access needs;
        inherit rollout;
      };
      document = import ./documents/envelope.nix {
        cluster = clean.name;
        serial = (import ./lib).time clean;
        rev = if clean.rev == null then clean.self.rev or clean.self.dirtyRev or "" else clean.rev;
      };
      documentsOf =
        host:
        {
          manifest = document "manifest" host (manifest host);
        }
        // (
          if policy.providers ? ${host} then { policy = document "policy" host (policy.of host); } else { }
        );

      compiled = valid faults (mapAttrs (host: _: documentsOf host) topology.hosts);
      documents = each documentsOf;

      policyOf = host: if policy.providers ? ${host} then policy.of host else null;
      unit = host: import ./units topology.hosts.${host}.instance;
      unitsIn =
        bin:
        each (
          host:
          mapAttrs (_: (unit host).render) (
            (unit host).units {
              inherit bin;
              manifest = manifest host;
              policy = policyOf host;
              documents = documents.${host};
            }
          )
        );
    in
    {
      inherit (clean) name;
      inherit
        compiled
        documents
        faults
        faultsOf
        unitsIn
        ;
      units = unitsIn "/usr/local/bin";
      sysctl = (import ./units "").sysctls;
      sysusers = each (host: (unit host).sysusers ((unit host).accounts (policyOf host)));
      topology =
        import ./resolve/export topology
        // (if rollout.budgets or [ ] == [ ] then { } else { inherit (rollout) budgets; });
      public = (import ./resolve/publichalf.nix).all clean;
      manifests = each manifest;
      policies = intersectAttrs policy.providers (each policy.of);
      directory = mapAttrs (import ./documents/directory.nix) documents;
      check =
        system:
        derivation {
          name = "florete-${clean.name}";
          inherit system;
          builder = "builtin:buildenv";
          derivations = "";
          manifest = toFile "documents.json" (toJSON compiled);
        };
    };
in
{
  # Reads a folder of files as the arguments of mkCluster.
  folder = import ./language/folder.nix;

  # id → { severity; title; } of every error and warning.
  rules = import ./check/rules.nix;

  # mkCluster { self; name; trustDomain; trust; hosts; services; users; roles; serviceGroups; providers; }
  #
  #   name             of the cluster
  #   faults           its faults, as data; never throws
  #   faultsOf.HOST    the faults that block a host
  #   topology         the topology with every reference followed, as data; never throws
  #   manifests.HOST   values of the documents; these and all below throw the faults
  #   policies.HOST    that block the host
  #   documents.HOST   { manifest = { body; envelope; }; policy = …; }, exact bytes;
  #                    policy on provider hosts only
  #   directory.HOST   the documents as a directory in the store
  #   units.HOST       name → text of the host's systemd units, for commands in
  #                    /usr/local/bin; unitsIn DIR is for another directory
  #   sysusers.HOST    the accounts of the units, as text of sysusers.d
  #   public.SECRET    public keys of a secret with `public`, as florctl recorded them; throws
  #                    if none are recorded yet
  #   sysctl           the kernel settings of the units, as text of sysctl.d
  #   compiled         the documents of all hosts; throws every fault
  #   check SYSTEM     a derivation for the checks of a flake; throws every fault
  mkCluster =
    given:
    let
      # folder.nix returns the faults of a folder of files in `_faults`.
      args = if isAttrs given then removeAttrs given [ "_faults" ] else given;
      folder = if isAttrs given then given._faults or [ ] else [ ];
      shapes = language.faults args;
    in
    cluster (language.clean args) (shapes // { top = folder ++ shapes.top; });
}

# Florete's compiler: a topology in, documents out. Pure builtins; see README.md
# for the language.
let
  inherit (builtins) derivation mapAttrs toFile toJSON;
  inherit (import ./fault.nix) order report;
  shape = import ./shape.nix;
in
{
  # mkCluster { self; name; trustDomain; trust; hosts; services; users; roles; groups; providers; }
  #
  #   name             of the cluster
  #   faults           what is wrong with it, as data; never throws
  #   topology         the topology with every reference followed, as data; never throws
  #   manifests.HOST   values of the documents; these and all below throw every
  #   policies.HOST    fault in one error
  #   documents.HOST   { manifest = { body; envelope; }; policy = …; }, exact bytes;
  #                    policy on provider hosts only
  #   directory.HOST   the same as a directory in the store
  #   check SYSTEM     a derivation for the checks of a flake
  mkCluster = args:
    let
      clean = shape.clean args;
      topology = import ./topology.nix clean;
      access = import ./access.nix topology;
      needs = import ./needs.nix { inherit topology access; };

      document = import ./envelope.nix {
        cluster = clean.name;
        serial = if clean.serial == null then clean.self.lastModified or 0 else clean.serial;
        rev = if clean.rev == null then clean.self.rev or clean.self.dirtyRev or "" else clean.rev;
      };

      faults = order (shape.faults "" args ++ import ./check.nix { inherit clean topology access; });
      sound = value: if faults == [ ] then value else throw (report clean.name faults);

      manifests = sound (import ./manifest.nix { inherit topology access needs; });
      policies = sound (import ./policy.nix { inherit topology needs; });
      documents = mapAttrs
        (host: manifest: { manifest = document "manifest" host manifest; }
          // (if policies ? ${host} then { policy = document "policy" host policies.${host}; } else { }))
        manifests;
    in
    {
      inherit (clean) name;
      inherit documents faults manifests policies;
      topology = import ./view.nix topology;
      directory = mapAttrs (import ./directory.nix) documents;
      check = system: derivation {
        name = "florete-${clean.name}";
        inherit system;
        builder = "builtin:buildenv";
        derivations = "";
        manifest = toFile "documents.json" (toJSON documents);
      };
    };
}

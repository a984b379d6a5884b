# Warnings about the cluster as a whole: its providers, their store, and the attributes that concern
# all hosts.
{
  clean,
  t,
  lib,
  ...
}:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    concatStringsSep
    filter
    length
    ;
  inherit (lib) fault faultIf;

  # Four members survive the loss of one, as three do.
  evenStore =
    let
      n = length t.store.hosts;
    in
    faultIf (t.store.shared && n > 0 && n - n / 2 * 2 == 0) {
      id = "FL067";
      place = "providers.store.hosts";
      problem = "an even number of members tolerates no more failures than one member fewer: found";
      value = concatStringsSep ", " t.store.hosts;
      remedy = "name one more, or one fewer";
    };

  # Other hosts wait for a provider on a device, which is often off.
  devices = concatMap (
    kind:
    map (
      h:
      fault {
        id = "FL058";
        place = "providers.${kind}.hosts";
        problem = "others would wait for a device, which comes and goes:";
        value = "host ${h}";
        remedy = "name a server, or write hosts.${h}.kind = \"server\"; if it is always there";
      }
    ) (filter (h: t.hosts.${h}.kind == "device") t.providers.${kind}.hosts)
  ) (attrNames t.providers);

  # If a cluster does not know its flake, all documents are from 1970: none is newer than another,
  # and no role has ended.
  unversioned = faultIf (clean.self == { } && clean.serial == null) {
    id = "FL154";
    place = "mkCluster";
    problem = "without the flake its documents cannot be published, and ends of roles count at no time: missing attribute";
    value = "self";
    remedy = "write inherit self;";
  };
  # Names are digests of IDs that are easy to guess.
  guessable = faultIf (clean.pathSalt == "" && any (h: h.uplinks != [ ]) (attrValues t.hosts)) {
    id = "FL162";
    place = "mkCluster";
    problem = "relays can find out by trying which services hosts reach through them: missing attribute";
    value = "pathSalt";
    remedy = "write pathSalt = \"…\"; with a random text, as openssl rand -hex 16 prints it";
  };
  # A threshold above the number of keys is an error.
  signers = import ./signers.nix clean;
  noSpareKey = faultIf (clean.trust.threshold > 1 && clean.trust.threshold == signers) {
    id = "FL166";
    place = "trust.threshold";
    problem = "nobody could publish once one of the ${toString signers} keys in trust.signingKeys is lost, because so many must sign:";
    value = toString signers;
    remedy = "list one more public key in trust.signingKeys, or acknowledge this";
  };
in
devices ++ evenStore ++ unversioned ++ guessable ++ noSpareKey

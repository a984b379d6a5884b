# Faults of foreign trust domains.
{ clean, lib, ... }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    elem
    filter
    map
    mapAttrs
    match
    split
    ;
  inherit (lib)
    attribute
    fault
    reserved
    role
    show
    twice
    when
    ;
  inherit (import ../lib.nix) isInvalid;
  inherit (import ../formats.nix) isIdentity;
  names = attrNames clean.federated;
  # Those written wrongly were reported.
  written = filter (n: clean.federated.${n}.trustDomain != "") names;

  own = map (
    n:
    fault {
      id = "FL083";
      place = "federated.${attribute n}.trustDomain";
      problem = "it is this cluster's own:";
      value = show clean.trustDomain;
      remedy = "give own identities roles where they are declared, and take this out";
    }
  ) (filter (n: clean.federated.${n}.trustDomain == clean.trustDomain) written);

  again =
    twice
      {
        id = "FL083";
        key = n: clean.federated.${n}.trustDomain;
        place = n: "federated.${attribute n}.trustDomain";
        problem = first: "federated.${first} has the trust domain";
        remedy = "declare each trust domain once, with all of its identities";
        what = n: n;
      }
      written;

  # Is s@n a part of a service, too?
  isPart =
    n: s:
    clean.services ? ${s}
    && clean.services.${s}.scope != "cluster"
    && (
      clean.hosts ? ${n}
      || clean.hostGroups ? ${n}
      || any (h: elem n h.tags || elem n (split "/" h.group)) (attrValues clean.hosts)
      || any (g: elem n g.tags) (attrValues clean.hostGroups)
    );
  named =
    name:
    any (r: elem name r.services || elem name r.except) (attrValues clean.roles)
    || any (elem name) (attrValues clean.serviceGroups);

  each =
    n:
    let
      f = clean.federated.${n};
      place = "federated.${attribute n}";
      part = match "spiffe://([^/]*)/.*" f.endpointID;
    in
    when (part != null && f.trustDomain != "" && part != [ f.trustDomain ]) [
      (fault {
        id = "FL084";
        place = "${place}.endpointID";
        problem = "no identity of ${f.trustDomain}, whose bundle would have to verify it:";
        value = show f.endpointID;
        remedy = "write what the endpoint presents, spiffe://${f.trustDomain}/…; declare another trust domain apart";
      })
    ]
    ++ when (f.profile == "https_spiffe" && f.endpointID == "") [
      (fault {
        id = "FL086";
        place = "${place}.endpointID";
        problem = "nothing that the endpoint is verified by:";
        value = show f.endpoint;
        remedy = "write the SPIFFE ID that it presents, spiffe://${f.trustDomain}/…; or profile = \"https_web\", where its name and a public CA are enough";
      })
    ]
    ++ when (f.profile == "https_web" && f.endpointID != "" && !isInvalid f.endpointID) [
      (fault {
        id = "FL086";
        place = "${place}.endpointID";
        problem = "an endpoint of profile https_web presents none:";
        value = show f.endpointID;
        remedy = "take it out, or profile";
      })
    ]
    ++ when (f.profile == "https_spiffe" && f.endpointRoots != [ ]) [
      (fault {
        id = "FL086";
        place = "${place}.endpointRoots";
        problem = "an endpoint of profile https_spiffe is verified by the bundle, not by";
        value = "${toString (builtins.length f.endpointRoots)} roots";
        remedy = "take them out, or write profile = \"https_web\"";
      })
    ]
    ++ concatMap (
      i:
      let
        at = "${place}.identities.${attribute i}";
        of = f.identities.${i}.roles;
      in
      when (!isIdentity i) [
        (fault {
          id = "FL004";
          place = at;
          problem = "no identity of a trust domain:";
          value = show i;
          remedy = "write what follows the trust domain in its SPIFFE ID: \"user/alice\", \"service/backup\", \"service/forge/backup\" or \"node/forge\"";
        })
      ]
      ++ role "${at}.roles" of
      ++ concatMap (r: when (elem r of) [ (reserved "${at}.roles" r) ]) [
        "node"
        "operator"
      ]
    ) (attrNames f.identities)
    ++ concatMap (
      s:
      let
        at = "${place}.services.${attribute s}";
      in
      when (!isIdentity "service/${s}") [
        (fault {
          id = "FL004";
          place = at;
          problem = "no service of a trust domain:";
          value = show s;
          remedy = "write what follows service/ in its SPIFFE ID: \"wiki\", or \"forge/wiki\"";
        })
      ]
      ++ role "${at}.roles" f.services.${s}.roles
      ++ when (isPart n s && named "${s}@${n}") [
        (fault {
          id = "FL136";
          place = at;
          problem = "${show "${s}@${n}"} is also what each host has its own of, there:";
          value = show n;
          remedy = "call federated.${attribute n} something that no host, group of hosts or tag is called";
        })
      ]
    ) (attrNames f.services);
in
{
  top = own ++ again;
  federated = mapAttrs (n: _: each n) clean.federated;
}

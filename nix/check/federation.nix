# Faults of foreign trust domains.
{
  clean,
  lib,
  ...
}@arguments:
let
  inherit (builtins)
    attrNames
    filter
    mapAttrs
    match
    ;
  inherit (lib)
    attribute
    fault
    faultIf
    show
    twice
    ;
  inherit (import ../lib) isInvalid;
  elsewhere = import ./elsewhere.nix arguments;
  names = attrNames clean.federated;
  # A trust domain of wrong form has been reported.
  written = filter (n: clean.federated.${n}.trustDomain != "") names;

  own = map (
    n:
    fault {
      id = "FL083";
      place = "federated.${attribute n}.trustDomain";
      problem = "it is this cluster's own:";
      value = show clean.trustDomain;
      remedy = "give own identities roles where they are declared, declare another cluster of it in clusters.<name>, and take this out";
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

  each =
    n:
    let
      f = clean.federated.${n};
      place = "federated.${attribute n}";
      part = match "spiffe://([^/]*)/.*" f.endpointID;
    in
    faultIf (part != null && f.trustDomain != "" && part != [ f.trustDomain ]) {
      id = "FL084";
      place = "${place}.endpointID";
      problem = "no identity of ${f.trustDomain}, whose bundle would have to verify it:";
      value = show f.endpointID;
      remedy = "write what the endpoint presents, spiffe://${f.trustDomain}/…; declare another trust domain apart";
    }
    ++ faultIf (f.profile == "https_spiffe" && f.endpointID == "") {
      id = "FL086";
      place = "${place}.endpointID";
      problem = "nothing that the endpoint is verified by:";
      value = show f.endpoint;
      remedy = "write the SPIFFE ID that it presents, spiffe://${f.trustDomain}/…; or profile = \"https_web\", where its name and a public CA are enough";
    }
    ++ faultIf (f.profile == "https_web" && f.endpointID != "" && !isInvalid f.endpointID) {
      id = "FL086";
      place = "${place}.endpointID";
      problem = "an endpoint of profile https_web presents none:";
      value = show f.endpointID;
      remedy = "take it out, or profile";
    }
    ++ faultIf (f.profile == "https_spiffe" && f.endpointRoots != [ ] && !builtins.elem "" f.endpointRoots) {
      id = "FL086";
      place = "${place}.endpointRoots";
      problem = "an endpoint of profile https_spiffe is verified by the bundle, not by";
      value = "${toString (builtins.length f.endpointRoots)} root${if builtins.length f.endpointRoots == 1 then "" else "s"} of its own";
      remedy = "take them out, or write profile = \"https_web\"";
    }
    ++ elsewhere n place f;
in
{
  top = own ++ again;
  federated = mapAttrs (n: _: each n) clean.federated;
}

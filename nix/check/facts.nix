# Warnings of facts with names of secrets. Values that look like a secret are refused as everywhere:
# FL006 and FL026.
lib:
let
  inherit (builtins) attrNames filter;
  inherit (import ../lib/text.nix) confidential;
in
# warnings :: String -> Entry -> [Fault]
place: entry:
lib.when (entry.facts != { }) (
  map (
    fact:
    lib.fault {
      id = "FL124";
      place = "${place}.facts.${lib.attribute fact}";
      problem = "everybody who reads the flake reads this fact, and its name suggests a secret:";
      value = fact;
      remedy = "take it out and deliver it with services.<name>.files or secrets, give it the name of what it is, or acknowledge this";
    }
  ) (filter confidential (attrNames entry.facts))
)

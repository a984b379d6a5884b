# Finds private keys and passwords in a topology, written there or in a file that it names.
let
  inherit (builtins)
    concatLists
    elemAt
    genList
    isList
    isPath
    isString
    length
    pathExists
    readDir
    readFile
    storeDir
    ;
  inherit (import ../../lib/fault.nix) fault;
  inherit (import ../../lib/text.nix) password secret;

  # A private key or a password in v itself: a string, a file, or a list of them.
  # leaks :: String -> Any -> [Fault]
  leaks =
    place: v:
    let
      found = id: value: remedy: [
        (fault {
          inherit
            id
            place
            value
            remedy
            ;
          problem = "found";
        })
      ];
      text = if isFile v then readFile v else v;
    in
    if isList v then
      concatLists (genList (i: leaks "${place}[${toString i}]" (elemAt v i)) (length v))
    else if !isString text then
      [ ]
    else if secret text then
      found "FL006" "a private key (not shown)"
        "take it out of the repository and its history, replace the key, and write the public half here"
    else if password text then
      found "FL026" "a password or token (not shown)"
        "take it out of the repository and its history, replace it, and deliver the new one with services.<name>.files"
    else
      [ ];

  # A path directly in the store is the flake itself, and Nix cannot list its parent.
  # isFile :: Any -> Bool
  isFile =
    v:
    isPath v
    && pathExists v
    && toString (dirOf v) != storeDir
    && (readDir (dirOf v)).${baseNameOf v} or "directory" != "directory";
in
{
  inherit isFile leaks;
}

# The protocols in which people open sessions at another machine.
let
  protocols = [
    "rdp"
    "ssh"
    "vnc"
  ];
in
{
  # isRemote :: String -> Bool
  isRemote = protocol: builtins.elem protocol protocols;
}

{ base, merge, ... }: merge base {
  services = {
    wiki = { host = ""; hosts = [ "alpha" "beta" ]; };
    docs = { host = "alpha"; port = 4; visibility = "public"; tlsName = "docs.example.org"; };
  };
  hosts.beta.capabilities = [ "ingress" ];
  roles.reader.services = [ "wiki" "docs" ];
}

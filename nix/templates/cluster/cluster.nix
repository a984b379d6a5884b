{
  name = "example";
  trustDomain = "example.flor";
  trust = {
    # Replace it with your own: florctl ca init --trust-domain example.flor --out ca
    roots = [ ./ca.crt ];
    # And this: nix key generate-secret --key-name example-1 | tee secret-key | nix key convert-secret-to-public
    keys = [ "example-1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" ];
  };
  providers = {
    cert.hosts = [ "forge" ];
    config.hosts = [ "forge" ];
  };
}

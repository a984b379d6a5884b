{ on, me }: on 3 { }

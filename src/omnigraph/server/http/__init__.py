"""What every route uses: operations, exchanges, bodies, answers, the OpenAPI document."""
